// Decoders that carry a recurrent state from token to token and attend to the encoder's outputs at
// each token.
#pragma once

#include <vector>

#include "layers/attention_family.h"
#include "layers/recurrent.h"

namespace mulciber {

/// Encoder data that a decoder attends to, computed once per source sentence.
struct RecurrentMemory {
  Tensor tensor;                 // (batch, length, columns): keys, then values
  Tensor control;                // u32, laid out by AttentionMemory::control()
  uint32_t rows_per_memory = 1;  // rows of the decoder that share a sentence (beams)
};

/// Attention with one set of scores over values that may be wider than one head: all heads share
/// the keys, and each has its own part of the values.
struct AttentionMemory {
  uint32_t heads = 1, key_size = 0, value_size = 0;
  AttentionScore score = AttentionScore::kDot;
  std::optional<Linear> query;   // (heads * key_size, H); none: the state itself
  Linear key;                    // (heads * key_size, heads * value_size)
  std::optional<Tensor> vector;  // (heads, key_size) f32: v of additive scores

  uint64_t columns() const { return uint64_t{heads} * (key_size + value_size); }
  uint64_t value_columns() const { return uint64_t{heads} * value_size; }
  /// The layout of RecurrentMemory::control.
  struct Control {
    ControlArray<uint32_t> lengths;             // (batch): positions of each sentence
    ControlArray<float> factors;                // (heads), factors of the result
    std::optional<ControlArray<float>> vector;  // (heads, key_size)
    uint32_t words = 0;
  };
  Control control(uint64_t batch) const;
  /// Fills `memory` from the encoder's outputs, (batch, length, heads * value_size). factor:
  /// multiplies the result; lies in the control tensor of the lengths.
  void project(ProgramBuilder& builder, const Tensor& outputs, const RowLengths& lengths,
               const ControlArray<float>& factor, const RecurrentMemory& memory) const;
  /// q: (rows, 1, ...). Result: (rows, 1, heads * value_size); with `map` also the weights, (rows,
  /// heads, 1, length).
  Tensor operator()(ProgramBuilder& builder, const HeadColumns& q, const RecurrentMemory& memory,
                    Tensor* map) const;
};

/// s_t = GRU(s_{t-1}, [y_{t-1}; c_t]) with c_t from scores v . tanh(W s_{t-1} + U h + b); the
/// result is tanh(R [y_{t-1}; c_t; s_t]). Source: Bahdanau, Cho and Bengio 2015, arXiv:1409.0473,
/// with tanh for its maxout and s_t for its s_{t-1} in R.
struct BahdanauDecoder {
  Linear initial;  // (H, H): s_0 = tanh(initial times the backward state at the first word)
  AttentionMemory attention;
  RecurrentCell cell;  // input: (3 H, D + context)
  Linear readout;      // (D, D + context + H)

  /// Shapes of the tensors that decoding carries from token to token.
  std::vector<Shape> state_shapes(uint64_t rows) const;
  /// Initializes the state before the first token. encoded: results of every layer of the encoder;
  /// beams: rows of the state per sentence.
  void begin(ProgramBuilder& builder, std::span<const RecurrentLayer::Result> encoded,
             uint64_t beams, std::span<const Tensor> state) const;
  /// Decodes one token of every row. words: (rows, n), whose D columns from first_column on are the
  /// token's embedding. Result: (rows, 1, D). Throws ShapeError naming the layer.
  Tensor step(ProgramBuilder& builder, const Tensor& words, uint32_t first_column,
              const RecurrentMemory& memory, std::span<const Tensor> state, Tensor* map) const;
};

/// h_t comes from stacked LSTM cells with input [y_{t-1}; a_{t-1}], scores h_t . W h, result a_t =
/// tanh(C [c_t; h_t]). Source: Luong, Pham and Manning 2015, arXiv:1508.04025: global attention,
/// general score, input feeding.
struct LuongDecoder {
  std::vector<RecurrentCell> cells;  // input of the first cell: (4 H, 2 D)
  AttentionMemory attention;
  Linear combine;  // (D, context + H)

  /// Shapes like BahdanauDecoder's: [y; a] first, then each cell's state.
  std::vector<Shape> state_shapes(uint64_t rows) const;
  void begin(ProgramBuilder& builder, std::span<const RecurrentLayer::Result> encoded,
             uint64_t beams, std::span<const Tensor> state) const;
  Tensor step(ProgramBuilder& builder, const Tensor& words, uint32_t first_column,
              const RecurrentMemory& memory, std::span<const Tensor> state, Tensor* map) const;
};

}  // namespace mulciber
