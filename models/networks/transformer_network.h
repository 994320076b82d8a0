// The encoder-decoder Transformer as searches and whole passes run it.
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

/// Source: Vaswani et al. 2017, arXiv:1706.03762.
class TransformerNetwork : public EncoderDecoderNetwork {
 public:
  TokenEmbedding source_embedding, target_embedding;
  Encoder encoder;
  Decoder decoder;
  uint32_t width = 0;          // D
  uint32_t widest_hidden = 0;  // of the feed-forward networks
  /// Where the output takes the decoder's states times a factor: the final norm, and the same with
  /// that factor in its gains. decoder.final_norm is none then.
  struct ScaledNorm {
    Norm states, output;
  };
  std::optional<ScaledNorm> scaled_norm;

  HeadCounts masked_heads() const override;
  /// Memories of all decoder layers, (batch, source, heads * (d_k + d_v)), then their caches,
  /// (rows, context, heads * (d_k + d_v)).
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

/// Names, shapes and source names of every weight that a configuration asks for. Optional weights
/// (final_logits_bias) are in the table when the checkpoint has them.
WeightTable transformer_weight_table(const EncoderDecoderConfig& config,
                                     const Checkpoint& checkpoint);
/// Adds what is computed and not read, and how many bytes that is.
void add_computed_weights(Device& device, const EncoderDecoderConfig& config, Weights& weights);
uint64_t computed_weight_bytes(const EncoderDecoderConfig& config);
/// weights: of the table, and the computed ones.
std::unique_ptr<TransformerNetwork> build_transformer_network(Device& device,
                                                              const EncoderDecoderConfig& config,
                                                              const Weights& weights,
                                                              DataType activations);

}  // namespace mulciber
