// A decoder-only network, built from its configuration and its weights.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "layers/causal_decoder.h"
#include "layers/embedding.h"
#include "models/core/network_weights.h"
#include "models/families/decoder_config.h"
#include "models/networks/network_adapters.h"

namespace mulciber {

struct DecoderNetwork {
  TokenEmbedding embedding;
  CausalDecoder decoder;
  DataType activations = DataType::kF32;
  DataType cache = DataType::kF32;
  uint32_t vocabulary = 0;
  uint32_t context = 0;                  // tokens of the longest sequence
  float stream_scale = 1;                // the residual stream over its stored value
  std::vector<float> head_masks;         // (layers, heads): factors of heads' outputs; empty: all 1
  std::vector<float> sinks;              // (layers, heads): logits of sinks; empty: no sinks
  std::vector<NetworkAdapter> adapters;  // their scales follow one another in a row
  bool sees = false;                     // sequences can contain embeddings of images
  const Weights* weights = nullptr;      // to name the weight behind bad logits; null: unnamed

  /// Elements of a token's embedding.
  uint64_t width() const { return embedding.table.shape.columns(); }
  /// Number of adapter scales of a row.
  uint32_t adapter_scales() const {
    return adapters.empty() ? 0 : adapters.back().first + adapters.back().count;
  }
};

/// Whether adapters can apply to the product with this weight of the table.
bool takes_adapters(const std::string& weight);

/// Types and fusions of a network.
struct NetworkTypes {
  DataType activations = DataType::kF32;
  DataType cache = DataType::kF32;
  /// Products with quantized weights quantize f32 activations to blocks of 8-bit integers. The
  /// output product does not, because the chosen token depends on small differences.
  bool integer_products = false;
  /// Products of one row compute the norm before them.
  bool folded_norms = false;
  /// Attention of one token also appends its key and value to the cache (CausalAttention::appends).
  bool folded_appends = false;
  /// Adapters of the weights in the table. lora_down() and lora_up() name their tensors.
  std::shared_ptr<const NetworkAdapters> adapters = {};
};

/// Builds the network of a configuration from its weights. positions: tokens of the longest
/// sequence, for which angles of rotary embeddings are computed. Throws ModelError for what the
/// layers do not support, before it asks for a weight.
DecoderNetwork decoder_network(const DecoderConfig& config, NetworkWeights& weights,
                               uint32_t positions, const NetworkTypes& types);

/// The weights that the network of a configuration asks for. Throws as decoder_network().
DeclaredWeights declare_decoder(const DecoderConfig& config, uint32_t positions);
/// The table of these weights, which does not depend on the number of positions.
WeightTable decoder_weight_table(const DecoderConfig& config);

}  // namespace mulciber
