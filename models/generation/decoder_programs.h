// Programs of a decoder-only network over a batch of sequences: the nodes of a pass, and the state
// between passes.
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
  uint32_t biases = 0;   // ids of a row that may have a logit bias
  /// Positions of a page, and pages of all rows together, in a paged cache; 0: every row has a
  /// context of its own.
  uint32_t page = 0, pages = 0;

  /// Pages of a row that has filled its context.
  uint32_t row_pages() const { return page > 0 ? (context + page - 1) / page : 0; }
};

/// Layout of the control buffer. All programs of a batch read the same.
struct BatchLayout {
  ControlLayout control;
  uint32_t longest = 1;  // tokens of a row in one pass
  /// (rows, length of the pass) ids; a pass of one token reads state.tokens instead.
  ControlArray<uint32_t> prompt;
  /// (longest): the row of BatchTensors::given that each token of a pass takes; only where the
  /// network sees images, and for passes over one row.
  std::optional<ControlArray<uint32_t>> given;
  /// (rows): the last token of each row in the pass, numbered through the pass.
  ControlArray<uint32_t> last;
  /// (rows, scales of a row): the scale of each LoRA adapter, where the network has any.
  std::optional<ControlArray<float>> adapter_scales;
  SampleStateLayout state;
  std::optional<ControlArray<float>> head_masks;  // CausalState::head_masks, where there are any
  ControlArray<uint32_t> split_counters;          // (rows, heads) zeros between dispatches
  std::optional<ControlArray<uint32_t>> pages;    // (rows, BatchShape::row_pages())

  /// The first row of the tokens' own embeddings in BatchTensors::given: a multiple of 64, so that
  /// every device can bind the rows from there on.
  uint32_t own_rows() const { return (longest + 63) / 64 * 64; }
  /// Where a pass of `length` tokens reads the ids of a row.
  ControlArray<uint32_t> fed_ids(uint32_t row, uint32_t length) const {
    return length == 1 ? state.tokens.part(row, 1) : prompt.part(uint64_t{row} * length, length);
  }
};
BatchLayout plan_batch(const DecoderNetwork& network, const BatchShape& shape, uint32_t longest);
/// Sets the LoRA scales of a row: one for each of DecoderNetwork::adapters; empty: the adapters'
/// own scales. They stand before the history of sequences in the control buffer.
void set_adapters(ControlWords& words, const DecoderNetwork& network, const BatchLayout& layout,
                  uint32_t row, std::span<const float> scales);
/// The layout of the same control buffer for a batch of rows [first, first + rows) alone.
BatchLayout part_of(const BatchLayout& layout, uint32_t first, uint32_t rows);
/// Contents of the control buffer before any token is fed.
ControlWords initial_words(const DecoderNetwork& network, const BatchLayout& layout);

/// Tensors that programs read and write besides their arenas.
struct BatchTensors {
  Tensor control, progress;  // u32
  /// Per layer: CausalLayer::cache(), or (pages, page, columns) of a paged cache.
  std::vector<Tensor> caches;
  std::optional<Tensor> rows;  // (longest pass, D) f32: a caller's embeddings
  /// (BatchLayout::own_rows() + longest pass, D) f32, only where the network sees images: given
  /// embeddings, then those of a pass's own tokens.
  std::optional<Tensor> given;
};
/// The tensors with the states of rows [first, first + rows) alone, where layers keep any. The
/// bytes of a row's state must be a multiple of the device's storage alignment.
BatchTensors part_of(const BatchTensors& tensors, const DecoderNetwork& network, uint32_t first,
                     uint32_t rows);
/// Tokens of a sequence for which the caches have room, padding included; states take any number.
uint32_t cache_room(const BatchTensors& tensors, const DecoderNetwork& network);
/// The tensors' shapes without memory, for planning.
BatchTensors batch_tensor_shapes(const DecoderNetwork& network, const BatchShape& shape,
                                 const BatchLayout& layout);

enum class PassOutput {
  kCache,   // updates caches or states alone
  kChoice,  // also chooses the next token of every running row
  kTrace,   // keeps logits of every token instead, and what the trace asks for
};
struct DecoderPass {
  uint32_t length = 1;
  PassOutput result = PassOutput::kChoice;
  bool from_rows = false;    // ids are rows of BatchTensors::rows, not of the model's table
  bool states = false;       // hidden states before the output product are kept, of every token
  bool raw_logits = false;   // logits are kept as they are before penalties and biases too
  bool mixed = false;        // one row: embeddings are the table's, or those of BatchTensors::given
  bool shares_rows = false;  // CausalState::shares_rows
  auto operator<=>(const DecoderPass&) const = default;
};

/// Adapter scales as layers read them; none where there are no adapters.
std::optional<AdapterScales> adapter_scales(const BatchLayout& layout, const BatchTensors& tensors);

/// Tensors that a pass keeps. One that was not asked for has no shape.
struct PassTensors {
  Tensor logits;      // kChoice: from which tokens are chosen, (rows, vocabulary)
  Tensor states;      // (rows, length, D) f32
  Tensor raw_logits;  // (rows, vocabulary)
};

/// Adds nodes that feed `length` tokens of every row: their keys and values are appended to the
/// caches, and states advance by layout.state.fed tokens. The ids stand at layout.prompt in the
/// control buffer, a single one at layout.state.tokens. Returns the hidden states before the output
/// product, (rows, length, D).
Tensor decoder_tokens(ProgramBuilder& builder, const DecoderNetwork& network,
                      const BatchLayout& layout, const BatchTensors& tensors,
                      const DecoderPass& shape, Trace* trace = nullptr);

/// Adds a pass of `shape.length` tokens for every row. trace: for kTrace; logits are kept as
/// "output.logits", the hidden states before the output product as "output.normalized".
PassTensors build_decoder_pass(ProgramBuilder& builder, const DecoderNetwork& network,
                               const BatchLayout& layout, const BatchTensors& tensors,
                               const DecoderPass& shape, Trace* trace = nullptr);

}  // namespace mulciber
