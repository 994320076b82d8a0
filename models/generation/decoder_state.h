// The state of a decoder-only network over a batch of sequences, which outlives its programs: the
// control words, the caches of its layers, and the buffers of a pass. Whoever runs passes has one:
// slots, scorer, trace and tasks.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "models/generation/given_rows.h"
#include "models/networks/decoder_network.h"
#include "ops/sampling.h"
#include "runtime/transfer.h"

namespace mulciber {

/// Most ids that may end a sequence.
constexpr uint32_t kMostStops = 16;

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
  uint32_t context = 0;  // tokens of a row
  uint32_t longest = 1;  // of them in one pass
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

/// What each layer keeps between passes.
std::vector<LayerCache> layer_caches(const DecoderNetwork& network);
/// How many positions before a token are read: those of the largest sliding window, where every
/// cache of tokens has one; UINT32_MAX: all of them. Layers of both kinds share one page table.
uint32_t cache_reach(std::span<const LayerCache> caches);
/// Bytes of the largest state of a sequence in a layer; 0: no layer keeps one.
uint64_t largest_state(std::span<const LayerCache> caches);

/// Tensors that programs read and write besides their arenas.
struct BatchTensors {
  Tensor control, progress;  // u32
  /// Per layer: LayerCache::contexts(), or pages() where the shape has pages.
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
/// The tensors' shapes without memory, for planning.
BatchTensors batch_tensor_shapes(const DecoderNetwork& network, const BatchShape& shape,
                                 const BatchLayout& layout);

/// Not thread-safe. Must not outlive the device or the network's weights.
class DecoderState {
 public:
  /// What a state has beside control and caches.
  struct Parts {
    bool choices = false;  // BatchTensors::progress, to which choices are written
    bool given = false;    // BatchTensors::given, where the network sees images
    /// The caches of another state of this shape, which must outlive this one; empty: its own.
    std::span<const Tensor> caches = {};
  };

  /// layout: plan_batch() of this shape, perhaps with the caller's arrays behind it. Throws
  /// DeviceError kOutOfMemory when the state does not fit.
  DecoderState(Device& device, const DecoderNetwork& network, const BatchShape& shape,
               const BatchLayout& layout, const Parts& parts);
  /// Device memory that such a state takes. The network's weights may be shapes alone.
  static uint64_t predict_bytes(const DecoderNetwork& network, const BatchShape& shape,
                                const BatchLayout& layout, const Parts& parts);

  Device& device() const { return device_; }
  const DecoderNetwork& network() const { return network_; }
  const BatchShape& shape() const { return shape_; }
  const BatchLayout& layout() const { return layout_; }
  const BatchTensors& tensors() const { return tensors_; }
  std::span<const LayerCache> caches() const { return caches_; }

  /// Contents of control, as the CPU knows them.
  ControlWords& words() { return words_; }
  const ControlWords& words() const { return words_; }
  BufferView control() const { return control_.view(); }
  /// The part of control with words [first, end).
  BufferView control(uint64_t first, uint64_t end) const;
  /// Write all words to the device, or words [first, end); read words [0, end).
  void upload();
  void upload(Uploader& uploader, uint64_t first, uint64_t end) const;
  void download(uint64_t end);
  /// What choices have written, while passes may be running: SampleStateLayout has the positions.
  const volatile uint32_t* progress() const;
  /// Begins anew, while no pass runs. counts: tokens in the history of each row.
  void begin_progress(std::span<const uint32_t> counts);
  /// Writes values of embeddings to BatchTensors::given.
  void give(std::span<const float> values);
  /// Allocates BatchTensors::rows, unless it is there.
  void need_rows();

  /// Tokens of a row in the caches, as the CPU knows them, and their ids.
  uint32_t length(uint32_t row) const { return words_.get(layout_.state.positions, row); }
  std::span<const uint32_t> ids(uint32_t row) const;
  /// Sets that number. The ids are those of the history.
  void set_length(uint32_t row, uint32_t tokens) {
    words_.set(layout_.state.positions, row, tokens);
  }
  /// The latest ids of a row's history, those behind length() included.
  std::vector<uint32_t> history(uint32_t row) const;

  /// Sets the LoRA scales of a row (set_adapters()). Returns whether they changed.
  bool use_adapters(uint32_t row, std::span<const float> scales);
  /// The LoRA scales of a row, as they stand in control.
  std::span<const uint32_t> adapter_scales(uint32_t row) const;

  /// Whether the caches can return to an earlier token of a sequence.
  bool rewinds() const;
  /// Tokens of a sequence for which the caches have room, padding included; states take any number.
  uint32_t room() const;
  /// The first `tokens` tokens of a row in the cache of a layer without pages; the state of one
  /// that keeps one, where `tokens` is not 0.
  BufferView cached(size_t layer, uint32_t row, uint32_t tokens) const;
  /// The first tokens of a page.
  BufferView cached_in_page(size_t layer, uint32_t page, uint32_t tokens) const;

 private:
  Device& device_;
  const DecoderNetwork& network_;
  BatchShape shape_;
  BatchLayout layout_;
  BatchTensors tensors_;
  std::vector<LayerCache> caches_;
  ControlWords words_;
  Buffer control_, progress_, given_, rows_;
  std::vector<Buffer> cache_buffers_;
};
/// What decoding takes.
inline constexpr DecoderState::Parts kDecodingParts = {.choices = true, .given = true};

}  // namespace mulciber
