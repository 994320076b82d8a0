#include "models/adapters/adapters.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include <fmt/format.h>

#include "base/hash.h"
#include "checkpoints/file_name.h"
#include "checkpoints/json.h"
#include "models/adapters/low_rank_adapter.h"
#include "mulciber/error.h"

namespace mulciber {
namespace {

void check_scale(const std::string& name, float scale) {
  if (!std::isfinite(scale))
    throw SettingError(fmt::format("adapter '{}'", printable(name)),
                       fmt::format("has the scale {}", scale), "give a number");
}

}  // namespace

std::vector<OpenAdapter> open_adapters(std::span<const AdapterFile> files) {
  std::vector<OpenAdapter> adapters;
  for (const AdapterFile& file : files) {
    OpenAdapter adapter = {file.name.empty() ? name_of_path(file.path) : file.name, file.scale, {}};
    check_scale(adapter.name, adapter.scale);
    if (std::ranges::find(adapters, adapter.name, &OpenAdapter::name) != adapters.end())
      throw SettingError(fmt::format("adapter '{}'", printable(adapter.name)),
                         "is the name of two adapters", "give one of them another name");
    adapter.files = std::make_shared<const LowRankAdapter>(file.path);
    adapters.push_back(std::move(adapter));
  }
  return adapters;
}

ModelOptions model_options(const LoadOptions& options) {
  return {.matrices = options.half_weights ? MatrixStorage::kF16 : MatrixStorage::kAsInFile,
          .activations = options.half_activations ? DataType::kF16 : DataType::kF32,
          .fast_activations = options.fast_activations,
          .memory_limit = options.memory_limit,
          .adapters = open_adapters(options.adapters),
          .merge_adapters = true,
          .on_progress = options.on_progress};
}

std::vector<float> chosen_adapters(const DecoderNetwork& network,
                                   const std::optional<std::vector<AdapterScale>>& wanted) {
  if (!wanted) return {};
  std::vector<float> scales(network.adapters.size());
  std::vector<bool> seen(scales.size());
  for (const AdapterScale& one : *wanted) {
    const std::string where = fmt::format("adapter '{}'", printable(one.name));
    const auto found = std::ranges::find(network.adapters, one.name, &NetworkAdapter::name);
    if (found == network.adapters.end()) {
      std::string names;
      for (const std::string& name : adapter_names(network))
        names += (names.empty() ? "" : ", ") + name;
      throw SettingError(where, "is not loaded beside this model",
                         names.empty() ? "load the model with it, and do not merge it"
                                       : "those that are: " + printable(names));
    }
    const auto number = static_cast<size_t>(found - network.adapters.begin());
    if (seen[number]) throw SettingError(where, "is wanted twice", "name it once");
    check_scale(one.name, one.scale);
    seen[number] = true;
    scales[number] = one.scale;
  }
  return scales;
}

std::vector<std::string> adapter_names(const DecoderNetwork& network) {
  std::vector<std::string> names;
  for (const NetworkAdapter& adapter : network.adapters) names.push_back(adapter.name);
  return names;
}

uint64_t fingerprint_with(uint64_t fingerprint, std::span<const OpenAdapter> adapters,
                          bool merged) {
  if (adapters.empty()) return fingerprint;
  constexpr uint64_t kSample = 64;
  Fnv1a hash;
  hash.add(fingerprint);
  for (const OpenAdapter& adapter : adapters) {
    if (merged) hash.add(std::bit_cast<uint32_t>(adapter.scale));
    for (const LowRankUpdate& update : adapter.files->updates()) {
      hash.add(update.weight);
      hash.add(std::bit_cast<uint64_t>(update.factor));
      for (const CheckpointTensor* tensor : {update.down.tensor, update.up.tensor}) {
        std::vector<std::byte> scratch;
        const auto bytes =
            tensor->read(0, std::min<uint64_t>(tensor->bytes.size(), kSample), scratch);
        hash.add(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
      }
    }
  }
  return hash.value();
}

uint64_t fingerprint_with(uint64_t fingerprint, std::span<const uint32_t> scales) {
  if (scales.empty()) return fingerprint;
  Fnv1a hash;
  hash.add(fingerprint);
  for (const uint32_t scale : scales) hash.add(scale);
  return hash.value();
}

}  // namespace mulciber
