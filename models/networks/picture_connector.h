// From the states of a picture to embeddings in a decoder's stream of tokens.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "layers/linear.h"
#include "models/core/device_weights.h"
#include "models/families/vision_language_family.h"

namespace mulciber {

/// Beginnings of the names that the weights of a tower, and of a connector, have beside those of a
/// decoder.
inline constexpr const char *kTowerWeights = "vision.", *kConnectorWeights = "connector.";

/// Names, shapes and source names of both.
WeightTable picture_weight_table(const VisionLanguageConfig& config, const Checkpoint& checkpoint);

class ConnectorNetwork {
 public:
  /// weights: those that begin with kConnectorWeights, without that.
  ConnectorNetwork(const VisionLanguageConfig& config, const Weights& weights);

  /// Numbers of the states in the order in which they are put together.
  const std::vector<uint32_t>& order() const { return order_; }
  /// states: (1, tokens, D); control: order(), from its first word on. Result: (rows, width), f32.
  Tensor operator()(ProgramBuilder& builder, const Tensor& states, const Tensor& control) const;

 private:
  std::vector<uint32_t> order_;
  uint32_t merged_;  // states of a row
  Activation activation_;
  Linear first_;
  std::optional<Linear> second_;
};

}  // namespace mulciber
