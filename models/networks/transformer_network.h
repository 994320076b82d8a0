// The encoder-decoder Transformer for searches and whole passes.
#pragma once

#include <optional>
#include <vector>

#include "layers/embedding.h"
#include "layers/transformer.h"
#include "models/core/network_weights.h"
#include "models/families/encoder_decoder_config.h"
#include "models/networks/encoder_decoder_network.h"

namespace mulciber {

/// An encoder-decoder Transformer. Source: Vaswani et al. 2017, arXiv:1706.03762.
class TransformerNetwork : public EncoderDecoderNetwork {
 public:
  TransformerNetwork(const EncoderDecoderConfig& config, NetworkWeights& weights,
                     DataType activations);

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
  /// For an output projection that scales its input: the final norm, and that norm with the factor
  /// in its gains.
  struct ScaledNorm {
    Norm states, output;
  };

  uint32_t encoder_heads() const { return encoder_.layers.front().self_attention.sizes.heads; }
  uint32_t decoder_heads() const { return decoder_.layers.front().self_attention.sizes.heads; }

  uint32_t width_;          // D
  uint32_t widest_hidden_;  // size of the widest feed-forward network
  TokenEmbedding source_embedding_, target_embedding_;
  Encoder encoder_;
  Decoder decoder_;
  std::optional<ScaledNorm> scaled_norm_;  // with it, decoder_ has no final norm
};

}  // namespace mulciber
