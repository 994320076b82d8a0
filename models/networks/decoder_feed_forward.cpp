#include "models/networks/decoder_feed_forward.h"

namespace mulciber {
namespace {

/// Parts of the first matrix: the file's, or gate and up.
std::vector<LinearPart> up_parts(const DecoderBuild& build, uint32_t layer) {
  const DecoderNames& names = build.names();
  const uint64_t F = build.config.feed_forward.hidden;
  const WeightNames up = build.in_layer(layer, names.up);
  if (build.config.feed_forward.kind == FeedForwardKind::kPlain) return {{up, F}};
  if (!names.gate_up) return {{build.in_layer(layer, names.gate), F}, {up, F}};
  const WeightNames both = build.in_layer(layer, names.gate_up);
  return {{both, F, 2 * F, 0}, {both, F, 2 * F, F}};
}

}  // namespace

FeedForward decoder_feed_forward(const DecoderBuild& build, uint32_t layer) {
  const DecoderFeedForward& described = build.config.feed_forward;
  const DecoderNames& names = build.names();
  const std::string name = layer_prefix(layer);
  if (build.config.layers[layer].dense)
    return gated_feed_forward(build, layer, name, {names.gate, names.up, names.down},
                              described.dense_hidden);
  const uint64_t D = build.config.width;
  const bool gated = described.kind == FeedForwardKind::kGated;
  return {.up = build.linear(name + "up", up_parts(build, layer), D, described.bias, gated),
          .down = build.linear(name + "down", {{build.in_layer(layer, names.down), D}},
                               described.hidden, described.bias),
          .activation = described.activation,
          .gated = gated};
}

FeedForward gated_feed_forward(const DecoderBuild& build, uint32_t layer, const std::string& name,
                               const GatedNames& names, uint64_t hidden) {
  const uint64_t D = build.config.width;
  return {
      .up = build.linear(
          name + "up",
          {{build.in_layer(layer, names.gate), hidden}, {build.in_layer(layer, names.up), hidden}},
          D, false, true),
      .down = build.linear(name + "down", {{build.in_layer(layer, names.down), D}}, hidden, false),
      .activation = build.config.feed_forward.activation,
      .gated = true};
}

}  // namespace mulciber
