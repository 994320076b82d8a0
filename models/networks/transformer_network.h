// The encoder-decoder Transformer as searches and whole passes run it.
#pragma once

#include "layers/embedding.h"
#include "layers/transformer.h"
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

  HeadCounts masked_heads() const override;
  /// Memories of all decoder layers, (batch, source, heads * (d_k + d_v)), then their caches,
  /// (rows, context, heads * (d_k + d_v)).
  std::vector<StateTensor> state_tensors(const SearchShape& shape) const override;
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

}  // namespace mulciber
