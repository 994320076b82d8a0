// What a search and a whole pass ask of an encoder-decoder network, whatever it is made of.
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

/// What the programs of a search are built for.
struct SearchShape {
  uint32_t batch, source_length, beams, context;
  BeamRoom room;
  bool masked_output;  // the output's bias takes banned ids away, see SearchPrograms::output_bias
  auto operator<=>(const SearchShape&) const = default;
  uint32_t rows() const { return batch * beams; }
};
/// What the program of a whole pass is built for.
struct PassShape {
  uint32_t batch, source_length, target_length;
  bool logits, hidden_states, attentions;
  bool scores = false;  // log probabilities of target ids instead of logits
  auto operator<=>(const PassShape&) const = default;
};

/// What both programs of a search, and a whole pass, read in control.
struct SourceControl {
  ControlArray<uint32_t> source;                                  // (batch, source length) ids
  ControlArray<uint32_t> lengths;                                 // (batch)
  ControlArray<float> encoder_masks, decoder_masks, cross_masks;  // (layers, heads)
  std::optional<ControlArray<float>> encoder_bias, decoder_bias;  // RelativeBias::values
};

/// What all layers of a stack add to their scores by distance (AttentionBias::kRelative).
struct RelativeBias {
  uint32_t span = 0;          // 0: nothing
  std::vector<float> values;  // (heads, 2 * span + 1)
};

/// Factors onto heads that stand in control, of all layers together.
struct HeadCounts {
  uint32_t encoder = 0, decoder = 0, cross = 0;
};

/// A tensor in memory of its own, which stands between programs and between steps.
struct StateTensor {
  Shape shape;
  DataType type = DataType::kF32;
  bool grows = false;  // (rows, context, columns), of which steps fill one position after the other
};

struct SearchView {
  const SearchShape& shape;
  const SourceControl& layout;
  const BeamStateLayout& beam;
  Tensor control;                 // u32
  std::span<const Tensor> state;  // as the network's state_tensors() has them
};
struct PassView {
  const PassShape& shape;
  const SourceControl& layout;
  Tensor control;                 // u32
  ControlArray<uint32_t> target;  // (batch, target length) ids
};

/// An output of a whole pass.
struct NetworkOutput {
  std::string name;   // as Hugging Face transformers calls it
  std::string trace;  // the tensor in the trace
  std::vector<uint64_t> extents;
  bool stacked = false;  // one of several layers, in their order
};

class EncoderDecoderNetwork {
 public:
  virtual ~EncoderDecoderNetwork() = default;

  Linear output;  // (vocabulary, D)
  DataType activations = DataType::kF32;
  uint32_t source_vocabulary = 0, target_vocabulary = 0;
  uint32_t context = 0;
  RelativeBias encoder_bias, decoder_bias;
  /// Whether the states of a source's padding are those that transformers has.
  bool padding_has_states = true;

  virtual HeadCounts masked_heads() const = 0;
  virtual std::vector<StateTensor> state_tensors(const SearchShape& shape) const = 0;
  /// Whether each of them holds one item of the batch after the other, so that the first items of
  /// many are kept as so many alone would be.
  virtual bool keeps_items_apart() const = 0;
  /// Columns of the activations that are alive at one time, and of the widest of them, for a token.
  virtual uint64_t live_columns() const = 0;
  virtual uint64_t widest_columns() const = 0;

  /// From the source ids to what the steps need.
  virtual void encode(ProgramBuilder& builder, const SearchView& view) const = 0;
  /// The next token of every row. Result: (rows, 1, D), which goes through `output`.
  virtual Tensor step(ProgramBuilder& builder, const SearchView& view) const = 0;
  /// Encoder and decoder over whole sequences, each token seeing those before it. Result: (batch,
  /// target length, D).
  virtual Tensor pass(ProgramBuilder& builder, const PassView& view, Trace& trace) const = 0;
  /// What pass() left in the trace beside the logits. wanted: with the lengths that were asked for.
  virtual std::vector<NetworkOutput> outputs(const PassShape& wanted) const = 0;
};

/// Takes room from `control`.
SourceControl plan_source(ControlLayout& control, const EncoderDecoderNetwork& network,
                          uint32_t batch, uint32_t source_length);

}  // namespace mulciber
