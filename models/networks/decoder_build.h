// What the parts of a decoder-only network are built from: its configuration, and the weights that
// they ask for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "layers/linear.h"
#include "models/core/network_weights.h"
#include "models/networks/decoder_network.h"

namespace mulciber {

/// Prefix of a layer's weights in the table.
inline std::string layer_prefix(uint32_t layer) { return "layers." + std::to_string(layer) + "."; }

/// Passed to the functions that build parts. They use it only until they return.
struct DecoderBuild {
  const DecoderConfig& config;
  NetworkWeights& weights;
  const NetworkTypes& types;

  const DecoderNames& names() const { return config.files.names; }
  /// Names in files of a part of the model, without ".weight".
  WeightNames global(const char* part) const { return with_prefixes(names().prefixes, part); }
  /// Names in files of a part of a layer, without ".weight". nullptr: none.
  WeightNames in_layer(uint32_t layer, const char* part) const;
  /// Names in files of the output product, without ".weight".
  WeightNames output() const;

  /// The stored residual stream is divided by residual_multiplier, so sublayers' results need no
  /// factor.
  float stream_scale() const { return config.residual_multiplier; }

  /// A vector that is one tensor of the file. sources: its names there, endings included.
  Tensor vector(const std::string& name, const WeightNames& sources, const Shape& shape) const;
  /// A product whose matrices have the form DecoderFiles::matrices, with its adapters; see
  /// NetworkWeights::linear().
  Linear linear(const std::string& name, const std::vector<LinearPart>& parts, uint64_t columns,
                bool bias, bool interleaved = false) const;
  /// A product with its adapters.
  Linear linear(WeightSpec matrix, std::optional<WeightSpec> bias) const;
  /// The adapters of a weight. Ask once for each weight.
  std::optional<LowRank> low_rank(const std::string& weight) const;
};

}  // namespace mulciber
