#include "models/generation/text_attention.h"

#include <algorithm>

#include <fmt/format.h>

#include "mulciber/error.h"

namespace mulciber {
namespace {

constexpr uint32_t kShortestPass = 16;

/// Room of a pass's cache: LongRoPE's angles are those of a sequence that has the whole context.
uint32_t cache_room(const DecoderNetwork& network) {
  const uint32_t original = network.decoder.original_context();
  return original > 0 ? original + 1 : 0;
}

AttentionLayers text_layers(TracedPass& pass, size_t layers, uint32_t tokens) {
  AttentionLayers found;
  for (size_t i = 0; i < layers; ++i)
    found.decoder.push_back(layer_maps(pass.program(), pass.map(i), tokens, tokens));
  return found;
}

}  // namespace

TextAttention::TextAttention(Device& device, const DecoderNetwork& network,
                             std::span<const uint32_t> ids, uint32_t room,
                             std::span<const float> adapters)
    : network_(network) {
  const auto first = static_cast<uint32_t>(ids.size());
  const uint32_t longest = std::max(first, std::min(room, network.context));
  for (const uint32_t length : pass_lengths(room > 0 ? kShortestPass : longest, longest))
    passes_.push_back(std::make_unique<TracedPass>(
        device, network, 1, length, TracedOutputs{.attentions = true}, cache_room(network)));
  begin(ids, adapters);
}

AttentionPasses TextAttention::plan(const Capabilities& device, const DecoderNetwork& network,
                                    uint32_t room) {
  AttentionPasses plan;
  const uint32_t longest = std::min(room, network.context);
  for (const uint32_t length : pass_lengths(kShortestPass, longest)) {
    ProgramBuilder builder(device, "plan");
    const Trace trace =
        plan_traced_pass(builder, network, 1, length, {.attentions = true}, cache_room(network));
    plan.add(builder, device);
    for (size_t i = 0; i < network.decoder.layers.size(); ++i)
      plan.add(trace.at(probabilities_of(i)));
  }
  return plan;
}

void TextAttention::begin(std::span<const uint32_t> ids, std::span<const float> adapters) {
  if (ids.empty()) throw ModelError("a text", "of no tokens has no attention", "");
  for (const uint32_t id : ids) {
    if (id >= network_.vocabulary)
      throw ModelError(
          "a text",
          fmt::format("holds token id {}, the model's are below {}", id, network_.vocabulary),
          "give one of this model's");
  }
  const auto count = static_cast<uint32_t>(ids.size());
  const auto fits =
      std::ranges::find_if(passes_, [&](const auto& pass) { return pass->length() >= count; });
  if (fits == passes_.end())
    throw SettingError(
        "AttentionTask",
        fmt::format("has room for {} tokens, there are {}", passes_.back()->length(), count),
        "make it with more room");
  TracedPass& pass = **fits;
  AttentionPass::begin(pass.program(), pass.control(), pass.words(ids, adapters),
                       text_layers(pass, network_.decoder.layers.size(), count));
}

PaddedRows TextAttention::largest_map() const {
  TracedPass& longest = *passes_.back();
  return text_layers(longest, network_.decoder.layers.size(), longest.length()).largest();
}

}  // namespace mulciber
