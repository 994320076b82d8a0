#include "models/networks/connector_network.h"

#include "models/core/linear_weights.h"
#include "models/networks/vision_network.h"
#include "ops/elementwise.h"
#include "ops/embedding.h"

namespace mulciber {
namespace {

Linear product(const Weights& weights, const std::string& name) {
  const std::vector<Tensor>& segments = weights.segments(name + ".weight");
  Linear linear = {.weight = segments.front()};
  if (weights.has(name + ".bias")) linear.bias = weights[name + ".bias"];
  linear.more_segments.assign(segments.begin() + 1, segments.end());
  return linear;
}

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

}  // namespace

WeightTable image_embedder_weight_table(const VisionLanguageConfig& config,
                                        const Checkpoint& checkpoint) {
  WeightTable table = vision_weight_table(config.vision, checkpoint);
  for (WeightSpec& spec : table) spec.name = kTowerWeights + spec.name;
  const Connector& connector = config.connector;
  const auto file = [&](const char* name) {
    WeightNames names;
    for (const char* prefix : connector.prefixes) names.push_back(std::string(prefix) + name);
    return names;
  };
  const uint64_t width = config.text.width,
                 read = uint64_t{config.vision.tower.width} * connector.merged * connector.merged;
  const std::string name = kConnectorWeights;
  add_linear(table, name + "first", {{file(connector.first), width}}, read, connector.bias);
  if (connector.second)
    add_linear(table, name + "second", {{file(connector.second), width}}, width, connector.bias);
  return table;
}

ConnectorNetwork::ConnectorNetwork(const VisionLanguageConfig& config, const Weights& weights)
    : order_(order_of(config)),
      merged_(config.connector.merged * config.connector.merged),
      activation_(config.connector.activation),
      first_(product(weights, "first")) {
  if (config.connector.second) second_ = product(weights, "second");
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

}  // namespace mulciber
