// From a decoder's configuration to its weights and its layers.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "checkpoints/weights.h"
#include "layers/causal_decoder.h"
#include "layers/embedding.h"
#include "models/families/decoder_config.h"
#include "models/networks/network_adapters.h"

namespace mulciber {

class Weights;

struct DecoderNetwork {
  TokenEmbedding embedding;
  CausalDecoder decoder;
  DataType activations = DataType::kF32;
  DataType cache = DataType::kF32;
  uint32_t vocabulary = 0;
  uint32_t context = 0;           // tokens of the longest sequence
  float stream_scale = 1;         // the residual stream is that many times what is kept of it
  std::vector<float> head_masks;  // (layers, heads), onto the heads' outputs; empty: all 1
  std::vector<float> sinks;       // (layers, heads), logits of sinks; empty: there are none
  std::vector<NetworkAdapter> adapters;  // one after another
  bool sees = false;                     // sequences hold embeddings that no token has, of pictures
  const Weights* weights = nullptr;  // to name the one that spoils the logits; null: none is named

  /// Numbers of a token's embedding.
  uint64_t width() const { return embedding.table.shape.columns(); }
  /// Scales that a row has.
  uint32_t adapter_scales() const {
    return adapters.empty() ? 0 : adapters.back().first + adapters.back().count;
  }
};

/// Names, shapes and source names of every weight that a configuration asks for.
WeightTable decoder_weight_table(const DecoderConfig& config);

/// Weights that are computed and not read: the angles of rotary embedding, for positions below
/// `positions`.
struct ComputedWeight {
  std::string name;
  Shape shape;
  std::function<std::vector<float>()> values;
};
std::vector<ComputedWeight> computed_decoder_weights(const DecoderConfig& config,
                                                     uint32_t positions);

/// Whether adapters can be added to the product with a weight of that table.
bool takes_adapters(const std::string& weight);

/// What a network computes and keeps its numbers in.
struct NetworkTypes {
  DataType activations = DataType::kF32;
  DataType cache = DataType::kF32;
  /// Products with weights in blocks take activations (of f32) in blocks of 8-bit integers. The
  /// output product does not: what is chosen hangs on small differences.
  bool integer_products = false;
  /// Products of one row begin with the norm before them.
  bool folded_norms = false;
  /// Attention of one token appends its key and value itself (CausalAttention::appends).
  bool folded_appends = false;
  /// Of the configuration's table. Its tensors are called as lora_down() and lora_up() say.
  std::shared_ptr<const NetworkAdapters> adapters = {};
};

/// The network with types and shapes alone, for planning before weights are there. weights: of each
/// weight of the table its segments (weight_segments()).
DecoderNetwork planned_decoder_network(
    const DecoderConfig& config, const std::map<std::string, std::vector<WeightSegment>>& weights,
    uint32_t positions, const NetworkTypes& types);

/// segments: the tensors of a name of the table or of a computed weight; several only where a
/// matrix is stored in several types, as in files that keep queries, keys and values in different
/// ones.
DecoderNetwork build_decoder_network(
    const DecoderConfig& config,
    const std::function<std::vector<Tensor>(const std::string&)>& segments, uint32_t positions,
    const NetworkTypes& types);

}  // namespace mulciber
