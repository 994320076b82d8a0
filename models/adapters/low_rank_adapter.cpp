#include "models/adapters/low_rank_adapter.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "base/finite.h"
#include "checkpoints/checkpoint.h"
#include "checkpoints/gguf.h"
#include "checkpoints/json.h"
#include "checkpoints/safetensors.h"
#include "checkpoints/tensor_values.h"
#include "models/adapters/peft_config.h"
#include "mulciber/error.h"

namespace mulciber {
namespace fs = std::filesystem;
namespace {

constexpr const char* kConfigFile = "adapter_config.json";
constexpr const char* kTensorFile = "adapter_model.safetensors";
constexpr const char* kDownloadAgain = "download the adapter again";

/// Removes the ending of a name; no value if it has another ending.
std::optional<std::string> without(std::string_view name, std::string_view ending) {
  if (!name.ends_with(ending)) return std::nullopt;
  return std::string(name.substr(0, name.size() - ending.size()));
}

/// Original name of a tensor that PEFT copied from an adapted module; no value for other tensors.
std::optional<std::string> name_of_copied(std::string_view name) {
  for (const char* part : {".weight", ".bias"})
    if (const auto module = without(name, std::string(".base_layer") + part)) return *module + part;
  return std::nullopt;
}

bool starts_as_gguf(const ModelFile& file) {
  const std::size_t count = std::min<std::size_t>(file.size(), 4);
  file.bytes()->fetch_first(count);
  return std::string_view(reinterpret_cast<const char*>(file.bytes()->all().data()), count) ==
         "GGUF";
}

}  // namespace

LowRankAdapter::~LowRankAdapter() = default;

LowRankAdapter::LowRankAdapter(const fs::path& path, const ModelFiles& files) {
  where_ = path.string();
  std::error_code ignored;
  if (files.exists(path / kConfigFile)) {
    read_folder(path, files);
  } else if (fs::is_directory(path, ignored)) {
    throw ModelError(where_, fmt::format("has no {}", kConfigFile),
                     "give a folder as PEFT saves an adapter, or a GGUF file");
  } else {
    read_gguf(files.open(path));
  }
  if (updates_.empty()) throw ModelError(where_, "holds no adapter", kDownloadAgain);
  std::ranges::sort(updates_, {}, &LowRankUpdate::weight);
  compare_parameters();
}

void LowRankAdapter::fail(const std::string& tensor, const std::string& problem,
                          const std::string& remedy) const {
  throw ModelError(fmt::format("{}, tensor `{}`", where_, printable(tensor)), problem, remedy);
}

uint32_t LowRankAdapter::rank() const {
  uint32_t most = 0;
  for (const LowRankUpdate& update : updates_) most = std::max(most, update.rank);
  return most;
}

std::vector<float> LowRankAdapter::values(const CheckpointTensor& tensor) const {
  std::vector<float> values = read_floats(tensor, 0, tensor.elements());
  if (!all_finite(DataType::kF32, 1, std::as_bytes(std::span(values))))
    fail(tensor.name, "holds NaN or infinity", kDownloadAgain);
  return values;
}

void LowRankAdapter::take(LowRankUpdate update, uint64_t experts) {
  const CheckpointTensor &down = *update.down.tensor, &up = *update.up.tensor;
  // llama.cpp's files have three-dimensional tensors for experts.
  const size_t dimensions = gguf_ && down.shape.size() == 3 ? 3 : 2;
  for (const CheckpointTensor* tensor : {&down, &up}) {
    if (tensor->shape.size() != dimensions)
      fail(tensor->name, fmt::format("has shape {}, not that of a matrix", tensor->shape_text()),
           kDownloadAgain);
    if (!has_float_values(tensor->type))
      fail(tensor->name, fmt::format("is stored as {}", name_of(tensor->type)), kReadableTypes);
  }
  const uint64_t ranks = down.shape[dimensions - 2];
  const bool stacked = dimensions == 3;
  if (ranks != up.shape[dimensions - 1] || (stacked && down.shape[0] != up.shape[0]))
    fail(down.name,
         fmt::format("has {}, but `{}` has shape {}",
                     stacked ? "shape " + down.shape_text() : fmt::format("rank {}", ranks),
                     printable(up.name), up.shape_text()),
         kDownloadAgain);
  const uint64_t rank = ranks / experts;
  if (rank == 0 || rank > kMostRank)
    fail(down.name, fmt::format("has rank {}, not one from 1 to {}", rank, kMostRank),
         rank == 0 ? kDownloadAgain : "merge it into its model with PEFT (merge_and_unload)");
  update.rank = static_cast<uint32_t>(rank);
  update.experts = stacked ? down.shape[0] : experts;
  const uint64_t columns = down.shape.back(), rows = up.shape[dimensions - 2];
  update.down = {&down, columns, rank * columns, columns, 1};
  // In PEFT's B the columns of all experts are interleaved.
  update.up = stacked ? LowRankFactor{&up, rows, rank * rows, 1, rank}
                      : LowRankFactor{&up, rows, 1, experts, ranks};
  updates_.push_back(std::move(update));
}

void LowRankAdapter::read_folder(const fs::path& folder, const ModelFiles& files) {
  const PeftConfig config = read_peft_config(files.open(folder / kConfigFile));
  const fs::path file = folder / kTensorFile;
  if (!files.exists(file))
    throw ModelError(where_, fmt::format("has no {}", kTensorFile),
                     files.exists(folder / "adapter_model.bin")
                         ? "save it again with save_pretrained(safe_serialization=True)"
                         : kDownloadAgain);
  where_ = file.string();
  safetensors_ = std::make_unique<SafetensorsFile>(files.open(file));
  constexpr std::string_view kPrefix = "base_model.model.";
  std::map<std::string, LowRankUpdate> modules;
  for (const CheckpointTensor& tensor : safetensors_->tensors()) {
    if (const auto copied = name_of_copied(tensor.name); copied && copied->starts_with(kPrefix)) {
      copies_.emplace_back(copied->substr(kPrefix.size()), &tensor);
      continue;
    }
    const auto down = without(tensor.name, ".lora_A.weight"),
               up = without(tensor.name, ".lora_B.weight");
    if ((!down && !up) || !tensor.name.starts_with(kPrefix))
      fail(tensor.name,
           tensor.name.find("lora_magnitude_vector") != tensor.name.npos
               ? "is one of DoRA, which is not supported"
           : tensor.name.find("lora_embedding_") != tensor.name.npos
               ? "adapts an embedding, which is not supported"
               : "is no matrix A or B of a linear layer",
           "merge the adapter into its model with PEFT (merge_and_unload), or take another one");
    const std::string module = (down ? *down : *up).substr(kPrefix.size());
    (down ? modules[module].down : modules[module].up).tensor = &tensor;
  }
  parameters_ = !config.parameters.empty();
  old_parameters_ = config.old_parameters;
  for (auto& [module, update] : modules) {
    const CheckpointTensor *down = update.down.tensor, *one = down ? down : update.up.tensor;
    if (!down || !update.up.tensor)
      fail(one->name, fmt::format("stands without its lora_{}", down ? 'B' : 'A'), kDownloadAgain);
    const std::optional<std::string> parameter = config.parameter_of(module);
    if (!parameter && !config.targets_module(module))
      fail(one->name,
           fmt::format("is of a module that target_modules of {} does not name",
                       printable(config.where)),
           kDownloadAgain);
    update.parameter = parameter.has_value();
    update.weight = parameter.value_or(module + ".weight");
    const std::string& target = parameter ? *parameter : module;
    const uint32_t expected = config.rank_of(target);
    // A has `expected` rows for each expert.
    const bool whole = parameter && !down->shape.empty() && down->shape[0] % expected == 0;
    take(update, whole ? std::max<uint64_t>(down->shape[0] / expected, 1) : 1);
    if (updates_.back().rank != expected)
      fail(one->name,
           fmt::format("has rank {}, {} says {}", updates_.back().rank, printable(config.where),
                       expected),
           kDownloadAgain);
    updates_.back().factor = config.factor_of(target, expected);
  }
}

void LowRankAdapter::compare_copies(const FindTensor& find) const {
  constexpr uint64_t kAtOnce = 1u << 20;
  constexpr float kRounding = 1.0f / 128;  // bfloat16's, if types differ
  for (const auto& [name, copy] : copies_) {
    const CheckpointTensor* own = find(name);
    if (!own) continue;  // AdapterStack reports matrices that are missing
    bool same = own->shape == copy->shape;
    if (same && is_quantized(own->type)) continue;  // values differ by rounding
    same = same && has_float_values(own->type) && has_float_values(copy->type);
    const float most = same && own->type != copy->type ? kRounding : 0;
    for (uint64_t first = 0; same && first < copy->elements(); first += kAtOnce) {
      const uint64_t count = std::min(kAtOnce, copy->elements() - first);
      const std::vector<float> ours = read_floats(*own, first, count),
                               theirs = read_floats(*copy, first, count);
      same = std::ranges::equal(
          ours, theirs, [&](float a, float b) { return std::abs(a - b) <= most * std::abs(a); });
    }
    if (!same)
      fail(copy->name, fmt::format("is not the same as the model's `{}`", printable(name)),
           "where it was not trained, save the adapter with save_embedding_layers=False");
  }
}

void LowRankAdapter::compare_parameters() {
  for (const LowRankUpdate& up : updates_) {
    const auto experts = without(up.weight, "gate_up_proj");
    if (!up.parameter || !experts) continue;
    const auto down =
        std::ranges::lower_bound(updates_, *experts + "down_proj", {}, &LowRankUpdate::weight);
    if (down == updates_.end() || down->weight != *experts + "down_proj") continue;
    // gate_up_proj has twice as many rows as down_proj has columns.
    if (up.down.width == down->up.width && up.up.width == 2 * down->down.width) turned_ = false;
    if (up.up.width == down->down.width && up.down.width == 2 * down->up.width) turned_ = true;
  }
}

void LowRankAdapter::read_gguf(const ModelFile& file) {
  if (!starts_as_gguf(file))
    throw ModelError(where_, "is not a GGUF file",
                     "give a folder as PEFT saves an adapter, or a GGUF file");
  gguf_ = std::make_unique<GgufFile>(file);
  const auto text = [&](const char* key) {
    const GgufValue* value = gguf_->find_value(key);
    return value && value->is_text() ? std::string(value->text()) : std::string();
  };
  const auto refuse = [&](const char* key, const std::string& problem) {
    throw ModelError(fmt::format("{}, `{}`", where_, key), problem,
                     "give a file that llama.cpp's convert_lora_to_gguf.py made");
  };
  if (text("general.type") != "adapter") refuse("general.type", "is not `adapter`");
  if (text("adapter.type") != "lora") refuse("adapter.type", "is not `lora`");
  if (gguf_->find_value("adapter.alora.invocation_tokens"))
    refuse("adapter.alora.invocation_tokens", "asks for an adapter that begins at certain tokens");
  architecture_ = text("general.architecture");
  if (architecture_.empty()) refuse("general.architecture", "is missing");
  const GgufValue* alpha = gguf_->find_value("adapter.lora.alpha");
  if (!alpha || !alpha->is_number() || !(std::abs(alpha->number()) < 1e6))
    refuse("adapter.lora.alpha", "is no number");
  std::map<std::string, LowRankUpdate> weights;
  for (const CheckpointTensor& tensor : gguf_->tensors()) {
    const auto down = without(tensor.name, ".lora_a"), up = without(tensor.name, ".lora_b");
    if (!down && !up) fail(tensor.name, "is neither a lora_a nor a lora_b", kDownloadAgain);
    LowRankUpdate& update = weights[down ? *down : *up];
    (down ? update.down : update.up).tensor = &tensor;
  }
  for (auto& [weight, update] : weights) {
    const CheckpointTensor *down = update.down.tensor, *up = update.up.tensor;
    if (!down || !up)
      fail((down ? down : up)->name, fmt::format("stands without its lora_{}", down ? 'b' : 'a'),
           kDownloadAgain);
    update.weight = weight;
    take(update);
    // An alpha of 0 means no scaling, as in llama.cpp.
    const double size = updates_.back().rank;
    updates_.back().factor = alpha->number() == 0 ? 1 : alpha->number() / size;
  }
}

}  // namespace mulciber
