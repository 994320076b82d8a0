// The connector of vision-language models: from an image's hidden states to embeddings for the
// decoder.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "layers/linear.h"
#include "models/core/network_weights.h"
#include "models/families/vision_language_family.h"
#include "models/networks/vision_network.h"

namespace mulciber {

class ConnectorNetwork {
 public:
  ConnectorNetwork(const VisionLanguageConfig& config, NetworkWeights& weights);

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

/// Computes an image's embeddings for the decoder, beside whose weights its own are loaded.
struct ImageEmbedderNetwork {
  ImageEmbedderNetwork(const VisionLanguageConfig& config, NetworkWeights& weights,
                       DataType activations);

  VisionTowerNetwork tower;
  ConnectorNetwork connector;
};

}  // namespace mulciber
