// The interface of encoder-decoder networks for beam searches and for passes over whole sequences.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "layers/linear.h"
#include "layers/trace.h"
#include "ops/search.h"

namespace mulciber {

/// Sizes and variants that the programs of a search are built for.
struct SearchShape {
  uint32_t batch, source_length, beams, context;
  BeamRoom room;
  bool masked_output;  // the output's bias masks banned ids, see SearchPrograms::output_bias
  auto operator<=>(const SearchShape&) const = default;
  uint32_t rows() const { return batch * beams; }
};
/// Sizes and outputs that the program of a whole pass is built for.
struct PassShape {
  uint32_t batch, source_length, target_length;
  bool logits, hidden_states, attentions;
  bool scores = false;  // log probabilities of target ids instead of logits
  auto operator<=>(const PassShape&) const = default;
};

/// Control words that both programs of a search, and a whole pass, read.
struct SourceControl {
  ControlArray<uint32_t> source;                                  // (batch, source length) ids
  ControlArray<uint32_t> lengths;                                 // (batch)
  ControlArray<float> encoder_masks, decoder_masks, cross_masks;  // (layers, heads)
  std::optional<ControlArray<float>> encoder_bias, decoder_bias;  // RelativeBias::values
};

/// Bias by distance of all layers of a stack (AttentionBias::kRelative).
struct RelativeBias {
  uint32_t span = 0;          // 0: no bias
  std::vector<float> values;  // (heads, 2 * span + 1)
};

/// Numbers of head factors in control, for all layers together.
struct HeadCounts {
  uint32_t encoder = 0, decoder = 0, cross = 0;
};

/// A tensor that persists between programs and between steps.
struct StateTensor {
  Shape shape;
  DataType type = DataType::kF32;
  bool grows = false;  // (rows, context, columns): steps fill one position after another
};

struct SearchView {
  const SearchShape& shape;
  const SourceControl& layout;
  const BeamStateLayout& beam;
  Tensor control;                 // u32
  std::span<const Tensor> state;  // the tensors of state_tensors()
};
struct PassView {
  const PassShape& shape;
  const SourceControl& layout;
  Tensor control;                 // u32
  ControlArray<uint32_t> target;  // (batch, target length) ids
};

/// An output of a whole pass.
struct NetworkOutput {
  std::string name;   // name in Hugging Face transformers
  std::string trace;  // name of the tensor in the trace
  std::vector<uint64_t> extents;
  bool stacked = false;  // one of several layers, which are stacked
};

class EncoderDecoderNetwork {
 public:
  virtual ~EncoderDecoderNetwork() = default;

  Linear output;  // (vocabulary, D)
  DataType activations = DataType::kF32;
  uint32_t source_vocabulary = 0, target_vocabulary = 0;
  uint32_t context = 0;
  RelativeBias encoder_bias, decoder_bias;
  /// Whether hidden states of the source's padding equal those of transformers.
  bool padding_has_states = true;

  virtual HeadCounts masked_heads() const = 0;
  virtual std::vector<StateTensor> state_tensors(const SearchShape& shape) const = 0;
  /// Whether the batch is the outermost dimension of each state tensor, so that the first items of
  /// a large batch lie as those of a smaller one.
  virtual bool keeps_items_apart() const = 0;
  /// Columns for a token of all activations that are alive at one time, and of the widest
  /// activation.
  virtual uint64_t live_columns() const = 0;
  virtual uint64_t widest_columns() const = 0;

  /// Adds the encoder, which computes from source ids what the steps need.
  virtual void encode(ProgramBuilder& builder, const SearchView& view) const = 0;
  /// Adds a decode step of every row. Returns (rows, 1, D), the input of `output`.
  virtual Tensor step(ProgramBuilder& builder, const SearchView& view) const = 0;
  /// Adds encoder and decoder over whole sequences, with a causal mask. Returns (batch, target
  /// length, D).
  virtual Tensor pass(ProgramBuilder& builder, const PassView& view, Trace& trace) const = 0;
  /// Outputs that pass() leaves in the trace beside the logits. wanted: with the requested lengths.
  virtual std::vector<NetworkOutput> outputs(const PassShape& wanted) const = 0;
};

/// Reserves words in `control`.
SourceControl plan_source(ControlLayout& control, const EncoderDecoderNetwork& network,
                          uint32_t batch, uint32_t source_length);

}  // namespace mulciber
