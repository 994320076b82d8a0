// Descriptions of models for programs.
#include <algorithm>

#include <nlohmann/json.hpp>

#include "models/core/capability.h"
#include "models/loading/inspect.h"

namespace mulciber {
namespace {

/// The public enumeration has the numbers of the internal one.
constexpr bool same_number(ModelCapability shown, Capability capability) {
  return static_cast<int>(shown) == static_cast<int>(capability);
}
static_assert(same_number(ModelCapability::kContinueText, Capability::kContinueText) &&
              same_number(ModelCapability::kTranslate, Capability::kTranslate) &&
              same_number(ModelCapability::kRewriteText, Capability::kRewriteText) &&
              same_number(ModelCapability::kEncodeText, Capability::kEncodeText) &&
              same_number(ModelCapability::kClassifyText, Capability::kClassify) &&
              same_number(ModelCapability::kAnswer, Capability::kAnswer) &&
              same_number(ModelCapability::kEncodeImages, Capability::kEncodeImages) &&
              same_number(ModelCapability::kClassifyImages, Capability::kClassifyImages) &&
              same_number(ModelCapability::kMatch, Capability::kMatch) &&
              same_number(ModelCapability::kTranscribe, Capability::kHear) &&
              same_number(ModelCapability::kReadImageText, Capability::kReadImageText) &&
              same_number(ModelCapability::kSeeImages, Capability::kSeeImages));

/// Other capabilities than encoding need a head, or a decoder, that was trained for them.
bool has_own_training(ModelCapability capability) {
  return capability != ModelCapability::kEncodeText && capability != ModelCapability::kEncodeImages;
}

std::vector<ModelCapability> listed(const CapabilitySet& capabilities) {
  std::vector<ModelCapability> result;
  for (const CapabilityRow& row : capability_rows())
    if (capabilities.has(row.capability))
      result.push_back(static_cast<ModelCapability>(row.capability));
  std::stable_partition(result.begin(), result.end(), has_own_training);
  return result;
}

}  // namespace

ModelDescription describe(const OpenModel& model) {
  const Checkpoint& checkpoint = model.checkpoint();
  ModelDescription result = {.path = checkpoint.path().string(),
                             .format = format_of(checkpoint),
                             .family = model_type(checkpoint),
                             .model_class = checkpoint.model_class(),
                             .supported = model.find_family() != nullptr,
                             .capabilities = {},
                             .files = checkpoint.file_count(),
                             .tensors = checkpoint.tensors().size(),
                             .bytes = checkpoint.total_bytes()};
  for (const CheckpointTensor* tensor : checkpoint.tensors())
    result.parameters += tensor->elements();
  if (!result.supported) return result;
  const CapabilitySet capabilities = model.capabilities();
  result.capabilities = listed(capabilities);
  result.chat_template =
      capabilities.has(Capability::kContinueText) && model.chat_template() != nullptr;
  const Extents extents = model.architecture().extents();
  result.vocabulary = extents.vocabulary;
  result.context = extents.context;
  result.encoder_layers = extents.encoder_layers;
  result.encoder_heads = extents.encoder_heads;
  result.decoder_layers = extents.decoder_layers;
  result.decoder_heads = extents.decoder_heads;
  return result;
}

std::string inspect_json(const OpenModel& model) { return inspect(model).dump(2); }

}  // namespace mulciber
