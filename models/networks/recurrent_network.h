// Recurrent encoder-decoder networks for searches and whole passes.
#pragma once

#include <variant>

#include "layers/embedding.h"
#include "layers/recurrent_decoder.h"
#include "models/core/network_weights.h"
#include "models/families/recurrent_config.h"
#include "models/networks/encoder_decoder_network.h"

namespace mulciber {

/// A recurrent encoder-decoder. All activations are f32, because the state passes through every
/// step.
class RecurrentNetwork : public EncoderDecoderNetwork {
 public:
  RecurrentNetwork(const RecurrentConfig& config, NetworkWeights& weights);

  HeadCounts masked_heads() const override { return {.cross = 1}; }
  /// The memory, its control, then the decoder's state.
  std::vector<StateTensor> state_tensors(const SearchShape& shape) const override;
  // State tensors have layers as the outermost dimension.
  bool keeps_items_apart() const override { return false; }
  uint64_t live_columns() const override;
  uint64_t widest_columns() const override;
  void encode(ProgramBuilder& builder, const SearchView& view) const override;
  Tensor step(ProgramBuilder& builder, const SearchView& view) const override;
  Tensor pass(ProgramBuilder& builder, const PassView& view, Trace& trace) const override;
  std::vector<NetworkOutput> outputs(const PassShape& wanted) const override;

 private:
  const AttentionMemory& attention() const;
  /// Columns of the encoder's outputs.
  uint64_t encoded_columns() const { return attention().value_columns(); }
  Tensor encode_into(ProgramBuilder& builder, const Tensor& control, const SourceControl& layout,
                     uint32_t batch, uint32_t length, const RecurrentMemory& memory,
                     std::span<const Tensor> state) const;

  TokenEmbedding embedding_;  // for source and target
  RecurrentStack encoder_;
  std::variant<BahdanauDecoder, LuongDecoder> decoder_;
};

/// The weights that the network asks for. Cells and their gates are PyTorch's (nn.GRU, nn.LSTM).
DeclaredWeights declare_recurrent(const RecurrentConfig& config);

}  // namespace mulciber
