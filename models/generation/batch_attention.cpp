// Attention maps of a text beside the decoding sequences of a BatchGenerator.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "models/adapters/adapters.h"
#include "models/generation/generation_batch.h"
#include "mulciber/error.h"
#include "runtime/slices.h"
#include "runtime/transfer.h"

namespace mulciber {
namespace {

// About as long as a decode step on a slow device, so that decoding sequences hardly wait.
constexpr double kSliceUs = 20'000;

/// The maps of a layer, (heads, queries, keys), without the columns behind its keys.
std::vector<float> read_layer(Device& device, const LayerMaps& maps) {
  const std::vector<float> wide = download_as<float>(device, maps.first.view);
  const uint64_t a_head = maps.bytes_a_head / sizeof(float);
  std::vector<float> layer;
  layer.reserve(uint64_t{maps.heads} * maps.first.rows * maps.first.columns);
  for (uint32_t head = 0; head < maps.heads; ++head) {
    for (uint32_t row = 0; row < maps.first.rows; ++row) {
      const auto begin = wide.begin() + static_cast<std::ptrdiff_t>(
                                            head * a_head + uint64_t{row} * maps.first.stride);
      layer.insert(layer.end(), begin, begin + maps.first.columns);
    }
  }
  return layer;
}

std::vector<float> mean_of_heads(const std::vector<float>& layer, uint32_t heads) {
  std::vector<float> mean(layer.size() / heads);
  for (size_t i = 0; i < layer.size(); ++i) mean[i % mean.size()] += layer[i];
  for (float& weight : mean) weight /= static_cast<float>(heads);
  return mean;
}

}  // namespace

std::optional<TokenAttention> GenerationBatch::attention(std::span<const uint32_t> ids,
                                                         const BatchAttentionOptions& options) {
  const std::vector<CausalLayer>& network = language->network().decoder.layers;
  if (options.layer && *options.layer >= network.size())
    throw SettingError("BatchAttentionOptions::layer",
                       fmt::format("is {} of {}", *options.layer, network.size()),
                       "layers are counted from 0");
  if (ids.empty()) throw ModelError("a text", "of no tokens has no attention", "");
  if (ids.size() > context)
    throw ModelError("a text",
                     fmt::format("has {} tokens, and the context is {}", ids.size(), context),
                     "give a shorter text");
  check_attention(ids.size());
  for (const uint32_t id : ids) check_id(id);

  auto pass =
      language->start_attention(ids, 0, chosen_adapters(language->network(), options.adapters));
  const TextAttention& text = *pass;  // the run owns the pass
  SlicedRun run(*device, std::move(pass));
  while (!run.done()) {
    if (options.cancel && *options.cancel) return std::nullopt;
    run.step(kSliceUs);
    run.wait();
    if (options.between) options.between();
  }

  TokenAttention found = {
      .length = static_cast<uint32_t>(ids.size()), .weights = {}, .windows = {}, .tokens = {}};
  const std::vector<LayerMaps>& layers = text.layers().decoder;
  const uint32_t first = options.layer.value_or(0);
  const uint32_t end = options.layer ? first + 1 : static_cast<uint32_t>(layers.size());
  for (uint32_t i = first; i < end; ++i) {
    std::vector<float> layer = read_layer(*device, layers[i]);
    if (options.mean) layer = mean_of_heads(layer, layers[i].heads);
    found.weights.insert(found.weights.end(), layer.begin(), layer.end());
    found.windows.push_back(network[i].attention.window);
  }
  found.layers = end - first;
  found.heads = options.mean ? 1 : layers[first].heads;
  for (const uint32_t id : ids) found.tokens.push_back(token_text(id));
  return found;
}

}  // namespace mulciber
