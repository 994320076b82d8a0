#include "models/translation/translation_attention.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "models/translation/encoder_decoder.h"
#include "models/translation/search_memory.h"
#include "mulciber/error.h"

namespace mulciber {
namespace {

AttentionLayers translation_layers(const PassProgram& program,
                                   const std::vector<NetworkOutput>& outputs) {
  AttentionLayers layers;
  const std::pair<const char*, std::vector<LayerMaps>*> kinds[] = {
      {"encoder_attentions", &layers.encoder},
      {"decoder_attentions", &layers.decoder},
      {"cross_attentions", &layers.cross}};
  for (const NetworkOutput& output : outputs) {
    for (const auto& [name, maps] : kinds) {
      if (output.name == name)
        maps->push_back(layer_maps(*program.program, program.trace.at(output.trace),
                                   static_cast<uint32_t>(output.extents[2]),
                                   static_cast<uint32_t>(output.extents[3])));
    }
  }
  return layers;
}

}  // namespace

TranslationAttention::TranslationAttention(const EncoderDecoder& owner,
                                           std::vector<std::shared_ptr<PassProgram>> programs)
    : owner_(owner), programs_(std::move(programs)) {}

void TranslationAttention::begin(const ForwardRequest& request) {
  const uint32_t source = request.source.length, target = request.target.length;
  const auto fits = std::ranges::find_if(programs_, [&](const auto& program) {
    return program->shape.source_length >= source && program->shape.target_length >= target;
  });
  if (fits == programs_.end()) {
    const PassShape& most = programs_.back()->shape;
    throw SettingError("AttentionRoom",
                       fmt::format("is for {} source tokens and {} target tokens, there are {} "
                                   "and {}",
                                   most.source_length, most.target_length, source, target),
                       "make the task with more room");
  }
  PassProgram& program = **fits;
  PassShape wanted = program.shape;
  wanted.source_length = source;
  wanted.target_length = target;
  AttentionPass::begin(*program.program, program.control.view(), owner_.begin(program, request),
                       translation_layers(program, owner_.network().outputs(wanted)));
}

PaddedRows TranslationAttention::largest_map() const {
  const PassProgram& longest = *programs_.back();
  return translation_layers(longest, owner_.network().outputs(longest.shape)).largest();
}

std::vector<PipelineKey> EncoderDecoder::pipelines(uint32_t source_tokens,
                                                   const GenerationSettings& settings) const {
  std::vector<PipelineKey> keys;
  for (uint32_t length = 1;; length = padded_length(length) + 1) {
    const std::vector<PipelineKey> some =
        search_pipelines(device_.capabilities(), *network_,
                         search_shape(*network_, 1, std::min(length, source_tokens), settings));
    keys.insert(keys.end(), some.begin(), some.end());
    if (padded_length(length) >= std::min(source_tokens, network_->context)) return keys;
  }
}

std::unique_ptr<TranslationAttention> EncoderDecoder::start_attention(const ForwardRequest& request,
                                                                      uint32_t source_room,
                                                                      uint32_t target_room) {
  PassShape shape = padded_shape(request);  // with attentions alone
  shape.source_length = std::max(shape.source_length, padded_length(source_room));
  const uint32_t longest = std::max(shape.target_length, padded_length(target_room));
  std::vector<std::shared_ptr<PassProgram>> programs;
  // Where no more room is asked for, the only length is the one that serves this text.
  const uint32_t shortest = target_room > 0 ? padded_length(1) : longest;
  for (const uint32_t length : pass_lengths(shortest, longest)) {
    shape.target_length = length;
    programs.push_back(pass(shape));
  }
  auto made = std::make_unique<TranslationAttention>(*this, std::move(programs));
  made->begin(request);
  return made;
}

AttentionPasses EncoderDecoder::plan_attention(uint32_t source_room, uint32_t target_room) const {
  AttentionPasses plan;
  PassShape shape = {.batch = 1,
                     .source_length = padded_length(source_room),
                     .target_length = 0,
                     .attentions = true};
  for (const uint32_t length : pass_lengths(padded_length(1), padded_length(target_room))) {
    shape.target_length = length;
    ProgramBuilder builder(device_.capabilities(), "plan");
    const Trace trace = plan_pass(builder, *network_, shape);
    plan.add(builder, device_.capabilities());
    for (const NetworkOutput& output : network_->outputs(shape))
      if (output.name.ends_with("attentions")) plan.add(trace.at(output.trace));
  }
  return plan;
}

}  // namespace mulciber
