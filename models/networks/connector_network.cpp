#include "models/networks/connector_network.h"

#include "ops/elementwise.h"
#include "ops/embedding.h"

namespace mulciber {
namespace {

constexpr const char *kTowerWeights = "vision.", *kConnectorWeights = "connector.";

std::vector<uint32_t> order_of(const VisionLanguageConfig& config) {
  const VisionTower& tower = config.vision.tower;
  const uint32_t side = config.connector.merged, across = tower.patches_across();
  std::vector<uint32_t> order;
  if (side == 1) {
    for (uint32_t i = config.connector.skips_first ? 1 : 0; i < tower.tokens(); ++i)
      order.push_back(i);
    return order;
  }
  const auto before = static_cast<uint32_t>(tower.first_tokens.size());
  for (uint32_t y = 0; y < tower.patches_down(); y += side)
    for (uint32_t x = 0; x < across; x += side)
      for (uint32_t line = 0; line < side; ++line)
        for (uint32_t i = 0; i < side; ++i) order.push_back(before + (y + line) * across + x + i);
  return order;
}

VisionTowerNetwork embedder_tower(const VisionConfig& config, NetworkWeights& weights,
                                  DataType activations) {
  PartWeights part(weights, kTowerWeights);
  return {config, part, activations};
}

ConnectorNetwork embedder_connector(const VisionLanguageConfig& config, NetworkWeights& weights) {
  PartWeights part(weights, kConnectorWeights);
  return {config, part};
}

}  // namespace

ConnectorNetwork::ConnectorNetwork(const VisionLanguageConfig& config, NetworkWeights& weights)
    : order_(order_of(config)),
      merged_(config.connector.merged * config.connector.merged),
      activation_(config.connector.activation) {
  const Connector& connector = config.connector;
  const auto linear = [&](const char* name, const char* in_file, uint64_t columns) {
    const LinearPart part = {with_prefixes(connector.prefixes, in_file), config.text.width};
    return weights.linear(name, {part}, columns, connector.bias);
  };
  first_ = linear("first", connector.first, uint64_t{config.vision.tower.width} * merged_);
  if (connector.second) second_ = linear("second", connector.second, config.text.width);
}

Tensor ConnectorNetwork::operator()(ProgramBuilder& builder, const Tensor& states,
                                    const Tensor& control) const {
  const auto scope = builder.layer("connector");
  const uint64_t D = states.shape.columns(), count = order_.size();
  const Tensor chosen = embedding(builder, states.reshaped({states.shape.rows(), D}),
                                  {.control = control,
                                   .tokens = {0, static_cast<uint32_t>(count)},
                                   .length = static_cast<uint32_t>(count),
                                   .result = states.type});
  const Tensor merged = chosen.reshaped({count / merged_, D * merged_});
  const Tensor first = first_(builder, merged, second_ ? activation_ : Activation::kNone);
  const Tensor rows = second_ ? (*second_)(builder, first) : first;
  return rows.type == DataType::kF32 ? rows : convert(builder, rows, DataType::kF32);
}

ImageEmbedderNetwork::ImageEmbedderNetwork(const VisionLanguageConfig& config,
                                           NetworkWeights& weights, DataType activations)
    : tower(embedder_tower(config.vision, weights, activations)),
      connector(embedder_connector(config, weights)) {}

}  // namespace mulciber
