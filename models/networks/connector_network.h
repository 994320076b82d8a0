// The connector of vision-language models: from an image's hidden states to embeddings for the
// decoder.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "layers/linear.h"
#include "models/core/device_weights.h"
#include "models/families/vision_language_family.h"

namespace mulciber {

/// Prefixes of the weights of the vision tower and the connector, which share a table with the
/// decoder's.
inline constexpr const char *kTowerWeights = "vision.", *kConnectorWeights = "connector.";

/// Names, shapes and source names of the weights of both.
WeightTable image_embedder_weight_table(const VisionLanguageConfig& config,
                                        const Checkpoint& checkpoint);

class ConnectorNetwork {
 public:
  /// weights: the connector's, without the prefix kConnectorWeights.
  ConnectorNetwork(const VisionLanguageConfig& config, const Weights& weights);

  /// Indices of the hidden states in the order of their concatenation.
  const std::vector<uint32_t>& order() const { return order_; }
  /// Projects states, (1, tokens, D). control: begins with order(). Returns (rows, width), f32.
  Tensor operator()(ProgramBuilder& builder, const Tensor& states, const Tensor& control) const;

 private:
  std::vector<uint32_t> order_;
  uint32_t merged_;  // hidden states in a row
  Activation activation_;
  Linear first_;
  std::optional<Linear> second_;
};

}  // namespace mulciber
