// Weight table and layers of a decoder-only network, from its configuration.
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

/// Names, shapes and source names of every weight of a configuration.
WeightTable decoder_weight_table(const DecoderConfig& config);

/// Weights that are computed instead of read: angles of rotary embeddings for positions below
/// `positions`, and rules of expert routing.
struct ComputedWeight {
  std::string name;
  Shape shape;
  std::function<std::vector<float>()> values;
};
std::vector<ComputedWeight> computed_decoder_weights(const DecoderConfig& config,
                                                     uint32_t positions);

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

/// Builds the network with types and shapes only, for planning before weights are loaded. weights:
/// the segments of each weight in the table (weight_segments()).
DecoderNetwork planned_decoder_network(
    const DecoderConfig& config, const std::map<std::string, std::vector<WeightSegment>>& weights,
    uint32_t positions, const NetworkTypes& types);

/// Builds the network. segments: returns the tensors of a weight in the table or of a computed
/// weight. A matrix has several only if its parts have different types, as queries, keys and values
/// have in some files.
DecoderNetwork build_decoder_network(
    const DecoderConfig& config,
    const std::function<std::vector<Tensor>(const std::string&)>& segments, uint32_t positions,
    const NetworkTypes& types);

}  // namespace mulciber
