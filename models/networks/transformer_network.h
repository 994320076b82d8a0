// The encoder-decoder Transformer for searches and whole passes.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "layers/embedding.h"
#include "layers/transformer.h"
#include "models/core/device_weights.h"
#include "models/families/encoder_decoder_config.h"
#include "models/networks/encoder_decoder_network.h"

namespace mulciber {

/// An encoder-decoder Transformer. Source: Vaswani et al. 2017, arXiv:1706.03762.
class TransformerNetwork : public EncoderDecoderNetwork {
 public:
  TokenEmbedding source_embedding, target_embedding;
  Encoder encoder;
  Decoder decoder;
  uint32_t width = 0;          // D
  uint32_t widest_hidden = 0;  // size of the widest feed-forward network
  /// For an output projection that scales its input: the final norm, and that norm with the factor
  /// in its gains. decoder.final_norm is then empty.
  struct ScaledNorm {
    Norm states, output;
  };
  std::optional<ScaledNorm> scaled_norm;

  HeadCounts masked_heads() const override;
  /// Cross-attention memories of all decoder layers, (batch, source, heads * (d_k + d_v)), then
  /// their KV caches, (rows, context, heads * (d_k + d_v)).
  std::vector<StateTensor> state_tensors(const SearchShape& shape) const override;
  bool keeps_items_apart() const override { return true; }
  uint64_t live_columns() const override;
  uint64_t widest_columns() const override;
  void encode(ProgramBuilder& builder, const SearchView& view) const override;
  Tensor step(ProgramBuilder& builder, const SearchView& view) const override;
  Tensor pass(ProgramBuilder& builder, const PassView& view, Trace& trace) const override;
  std::vector<NetworkOutput> outputs(const PassShape& wanted) const override;

 private:
  uint32_t encoder_heads() const { return encoder.layers.front().self_attention.sizes.heads; }
  uint32_t decoder_heads() const { return decoder.layers.front().self_attention.sizes.heads; }
};

/// Names, shapes and source names of every weight of a configuration. Optional weights
/// (final_logits_bias) are in the table if the checkpoint has them.
WeightTable transformer_weight_table(const EncoderDecoderConfig& config,
                                     const Checkpoint& checkpoint);
/// Add the weights that are computed instead of read, and return their bytes.
void add_computed_weights(Device& device, const EncoderDecoderConfig& config, Weights& weights);
uint64_t computed_weight_bytes(const EncoderDecoderConfig& config);
/// Builds the network. weights: of the table, and the computed ones.
std::unique_ptr<TransformerNetwork> build_transformer_network(Device& device,
                                                              const EncoderDecoderConfig& config,
                                                              const Weights& weights,
                                                              DataType activations);

}  // namespace mulciber
