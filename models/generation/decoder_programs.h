// Programs of a decoder-only network over a batch of sequences: what a pass is made of, and the
// state between passes.
#pragma once

#include <span>
#include <vector>

#include "models/generation/given_rows.h"
#include "models/networks/decoder_network.h"
#include "ops/sampling.h"

namespace mulciber {

/// Most ids that may end a sequence.
constexpr uint32_t kMostStops = 16;

/// Lengths of a pass, so that few programs serve all prompts.
constexpr uint32_t kPassLengths[] = {1, 8, 16, 32, 64, 128, 256, 512};

struct BatchShape {
  uint32_t rows = 1;
  uint32_t context = 0;  // tokens of a sequence
  uint32_t biases = 0;   // ids of a row that may have one
  /// Positions of a page, and pages of all rows together; 0: every row has a context of its own.
  uint32_t page = 0, pages = 0;

  /// Pages of a row that has filled its context.
  uint32_t row_pages() const { return page > 0 ? (context + page - 1) / page : 0; }
};

/// What stands in control. Every program of a batch reads the same.
struct BatchLayout {
  ControlLayout control;
  uint32_t longest = 1;  // tokens of a row in one pass
  /// (rows, length of the pass) ids; a pass of one token reads state.tokens instead.
  ControlArray<uint32_t> prompt;
  /// Of a network that sees, (longest): the row of BatchTensors::given that each token of a pass
  /// over one row takes.
  std::optional<ControlArray<uint32_t>> given;
  /// (rows): the last token of each row in the pass, numbered through the pass.
  ControlArray<uint32_t> last;
  /// (rows, scales of a row): how much of each adapter is added, where the network has any.
  std::optional<ControlArray<float>> adapter_scales;
  SampleStateLayout state;
  std::optional<ControlArray<float>> head_masks;  // CausalState::head_masks, where there are any
  ControlArray<uint32_t> split_counters;          // (rows, heads) zeros between dispatches
  std::optional<ControlArray<uint32_t>> pages;    // (rows, BatchShape::row_pages())

  /// Where the tokens' own embeddings begin in BatchTensors::given: a row that any device binds.
  uint32_t own_rows() const { return (longest + 63) / 64 * 64; }
  /// The ids that a pass of so many tokens takes of a row.
  ControlArray<uint32_t> fed_ids(uint32_t row, uint32_t length) const {
    return length == 1 ? state.tokens.part(row, 1) : prompt.part(uint64_t{row} * length, length);
  }
};
BatchLayout plan_batch(const DecoderNetwork& network, const BatchShape& shape, uint32_t longest);
/// What a row adds of the network's adapters: a scale for each of DecoderNetwork::adapters; empty:
/// their own scales. It stands before the history of sequences in control.
void set_adapters(ControlWords& words, const DecoderNetwork& network, const BatchLayout& layout,
                  uint32_t row, std::span<const float> scales);
/// The same control as a batch of rows [first, first + rows) alone sees it.
BatchLayout part_of(const BatchLayout& layout, uint32_t first, uint32_t rows);
/// Control before anything is taken in.
ControlWords initial_words(const DecoderNetwork& network, const BatchLayout& layout);

/// What programs read and write besides their arenas.
struct BatchTensors {
  Tensor control, progress;  // u32
  /// Per layer: CausalLayer::cache(), or (pages, page, columns).
  std::vector<Tensor> caches;
  std::optional<Tensor> rows;  // (longest pass, D) f32: embeddings that no table has
  /// Of a network that sees, (BatchLayout::own_rows() + longest pass, D) f32: such embeddings, then
  /// those of the tokens of a pass.
  std::optional<Tensor> given;
};
/// The same with the states of rows [first, first + rows) alone, where layers keep any. What a
/// row's state takes must be a multiple of the device's storage alignment.
BatchTensors part_of(const BatchTensors& tensors, const DecoderNetwork& network, uint32_t first,
                     uint32_t rows);
/// Tokens of a sequence that the caches have room for, padding included; states take any number.
uint32_t cache_room(const BatchTensors& tensors, const DecoderNetwork& network);
/// Shapes alone: for planning.
BatchTensors batch_tensor_shapes(const DecoderNetwork& network, const BatchShape& shape,
                                 const BatchLayout& layout);

enum class PassOutput {
  kCache,   // keys and values, or states, alone
  kChoice,  // and the next token of every running row
  kTrace,   // and logits of every token, with what the trace asks for
};
struct DecoderPass {
  uint32_t length = 1;
  PassOutput result = PassOutput::kChoice;
  bool from_rows = false;    // ids are rows of BatchTensors::rows, not of the model's table
  bool states = false;       // what the output product takes is kept, of every token
  bool raw_logits = false;   // logits as the model gives them are kept beside those chosen from
  bool mixed = false;        // of one row: ids are those of the table, or of BatchTensors::given
  bool shares_rows = false;  // CausalState::shares_rows
  auto operator<=>(const DecoderPass&) const = default;
};

/// As layers read them; none where there are no adapters.
std::optional<AdapterScales> adapter_scales(const BatchLayout& layout, const BatchTensors& tensors);

/// What a pass keeps; without shape where it was not asked for.
struct PassTensors {
  Tensor logits;      // of kChoice, that are chosen from: (rows, vocabulary)
  Tensor states;      // (rows, length, D) f32
  Tensor raw_logits;  // (rows, vocabulary)
};

/// Adds `length` tokens of every row, whose keys and values are appended to the caches, or whose
/// states go on over as many as layout.state.fed says: what the output product takes, (rows,
/// length, D). The tokens stand at layout.prompt in control, one at layout.state.tokens.
Tensor decoder_tokens(ProgramBuilder& builder, const DecoderNetwork& network,
                      const BatchLayout& layout, const BatchTensors& tensors,
                      const DecoderPass& shape, Trace* trace = nullptr);

/// Adds a pass of `shape.length` tokens for every row. trace: for kTrace; logits are kept as
/// "output.logits", what the output product takes as "output.normalized".
PassTensors build_decoder_pass(ProgramBuilder& builder, const DecoderNetwork& network,
                               const BatchLayout& layout, const BatchTensors& tensors,
                               const DecoderPass& shape, Trace* trace = nullptr);

}  // namespace mulciber
