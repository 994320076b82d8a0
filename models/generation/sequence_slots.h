// Slots for sequences over one decoder-only network, each filled, decoded and emptied apart from
// the others. The results of a sequence depend neither on its slot nor on the batch composition: a
// chunk of a prompt is prefilled alone, and a decode step chooses its kernels as for all slots,
// however few take part.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "models/generation/pass_programs.h"
#include "models/generation/slot_pages.h"
#include "runtime/device.h"
#include "runtime/pipeline.h"
#include "runtime/slices.h"

namespace mulciber {

struct SlotShape {
  uint32_t slots = 1;
  uint32_t context = 0;  // tokens of a sequence
  uint32_t chunk = 1;    // most prompt tokens in one pass: one of kPassLengths
  uint32_t biases = 0;   // ids of a sequence that may have a logit bias
  /// Tokens in the paged cache, of all sequences and of what is kept of earlier ones: at least a
  /// context; 0: a context for every slot.
  uint64_t tokens = 0;
  /// Rows of a step beside those of the slots, which draft tokens alone take.
  uint32_t draft_rows = 0;

  uint32_t rows() const { return slots + draft_rows; }
};

/// A sequence before its prompt is prefilled.
struct SlotSequence {
  std::span<const uint32_t> prompt;
  /// The prompt as prefix sharing compares it: where tokens have a caller's embeddings, it has
  /// numbers that no token has, and different ones for different embeddings. Empty: the prompt.
  std::span<const uint32_t> identity = {};
  /// Whether the sequence shares cached keys and values of earlier sequences only where prefill of
  /// its own prompt would give the same bits: not those of tokens that were generated.
  bool exact = true;
  bool reuses = true;  // shares cached keys and values at all
  /// Whether steps choose their kernels as for SlotShape::rows(), so that draft tokens in
  /// SlotShape::draft_rows change no bit.
  bool drafts = false;
  Sampling sampling = {};
  uint32_t stream = 0;
  LogitBiases biases = {};
  std::span<const float> adapters = {};  // see set_adapters()
  bool keeps_logits = false;             // logits of every choice, before penalties and biases
};

/// The tokens of a sequence and its KV cache or states, in CPU memory.
struct SavedSequence {
  std::vector<uint32_t> ids;                   // its tokens
  DataType type = DataType::kF32;              // type of the caches
  std::vector<std::vector<std::byte>> layers;  // (tokens, columns) each
};

/// Not thread-safe. Must not outlive the device or the network's weights.
class SequenceSlots {
 public:
  /// The id that a sequence chose; none where its logits are not finite.
  using Choice = std::optional<uint32_t>;

  /// Throws DeviceError kOutOfMemory when the slots do not fit. memory_limit: bytes; 0: what is
  /// available; none: the caller has planned and checked the memory.
  SequenceSlots(Device& device, const DecoderNetwork& network, const SlotShape& shape,
                std::optional<uint64_t> memory_limit = 0);
  SequenceSlots(const SequenceSlots&) = delete;
  ~SequenceSlots();
  /// Device memory that the slots take, before anything is allocated. The network's weights may be
  /// shapes alone.
  static uint64_t predict_bytes(const Capabilities& device, const DecoderNetwork& network,
                                const SlotShape& shape);
  /// The shape with no more tokens than a device can bind of a layer at once. Throws ModelError
  /// where not even a context fits.
  static SlotShape bindable(const Capabilities& device, const DecoderNetwork& network,
                            SlotShape shape);
  const SlotShape& shape() const { return shape_; }

  /// Takes a free slot. Returns how many tokens of the prompt are in the cache from earlier
  /// sequences; the others are to be fed. Where layers keep a state, a single slot goes on from the
  /// end of the sequence before, or from the end of its prompt. Throws SettingError when a setting
  /// is out of its range.
  uint32_t begin(uint32_t slot, const SlotSequence& sequence);
  /// Looks for a cached prefix again, which another sequence may have fed meanwhile. Returns the
  /// tokens that the slot then holds.
  uint32_t adopt(uint32_t slot);
  /// Sets what a sequence may choose from now on, a bit for each id; empty: any id, as after
  /// begin().
  void set_mask(uint32_t slot, std::span<const uint32_t> mask);
  /// Pages that sequences can still get.
  uint32_t pages_left() const { return pages_.available(); }
  uint32_t page_tokens() const { return pages_.positions(); }
  /// How many of these a sequence of `tokens` tokens with that prefix would take. identity: as in
  /// SlotSequence.
  uint32_t pages_needed(std::span<const uint32_t> identity, std::span<const float> adapters,
                        bool exact, uint32_t tokens);
  /// The end of the numbers that an identity may have besides tokens: they lie between the
  /// vocabulary and it.
  static constexpr uint32_t kIdentities = 1 << 24;
  /// Most pages that a sequence has at once until it has `tokens` tokens: where all layers have
  /// sliding windows, it gives back pages that lie before them.
  uint32_t most_pages(uint32_t tokens) const { return pages_.most_pages(tokens); }
  uint32_t pages_held(uint32_t slot) const { return pages_.held(slot); }
  /// Reserves pages for `tokens` more tokens of a sequence; false where no page is left for them.
  /// feed() and step() need room for theirs.
  bool reserve(uint32_t slot, uint32_t tokens);

  /// Feeds the next `count` tokens of the prompt, at most a chunk. chooses: they are the last, and
  /// the first id is chosen. given: embeddings in the prompt, with those of these tokens among
  /// them.
  Choice feed(uint32_t slot, uint32_t count, bool chooses, std::span<const GivenRows> given = {});

  /// What a pass that an application runs (SequenceTask) has besides: embeddings of its tokens in
  /// BatchTensors::rows, and hidden states that are kept.
  struct TaskPass {
    bool from_rows = false, states = false;
  };
  /// Begin feed() or step() of one sequence: the pass is run by the caller, behind the updates that
  /// the next call of take_updates() adds.
  RowsPass begin_feed(uint32_t slot, uint32_t count, bool chooses, std::span<const GivenRows> given,
                      const TaskPass& with);
  /// The pass of feed() behind `held` tokens, and that of a step of one sequence.
  RowsPass feed_pass(uint32_t slot, uint32_t held, uint32_t count, bool chooses,
                     const TaskPass& with) const;
  RowsPass step_pass(uint32_t slot, const TaskPass& with) const;
  /// Adds to a stage what control needs on the device before a pass.
  void take_updates(const RowsPass& pass, Stage& stage);
  /// End them, once the pass has ended. Returns the choice of one that chooses.
  Choice end_feed(const RowsPass& pass, uint32_t slot, uint32_t count);
  Choice end_step(const RowsPass& pass, uint32_t slot) { return take_choice(pass, slot); }
  PassPrograms::Built& built(const RowsPass& pass) { return programs_.built(pass); }
  /// Allocates BatchTensors::rows, and returns its memory.
  BufferView need_rows();
  /// How many slots, from the first on, a step computes whose sequences are in the first `count`.
  /// Only few numbers occur, so that there are few recordings; from 8 on each number is at most
  /// half as large again as the one before.
  uint32_t step_slots(uint32_t count) const;
  /// Draft tokens behind the last token of a sequence. Each is fed by a row of the step that no
  /// sequence has, at the position and in the way of a later step that feeds it.
  struct Draft {
    uint32_t slot = 0;
    std::vector<uint32_t> ids;
    std::vector<uint32_t> rows;  // free slots, one for each id
    std::vector<IdMask> masks;   // masks of the choices behind them, if the sequence has a mask
  };
  /// Whether draft tokens can be taken back: only where no layer keeps a state.
  bool can_draft() const { return state_.rewinds(); }
  /// Runs a decode step. Returns the next id of every sequence in `slots`, which have chosen one
  /// before. There must be room for draft tokens as well.
  std::vector<Choice> step(std::span<const uint32_t> slots, std::span<const Draft> drafts = {});
  /// Submits `count` decode steps, `together` in one submission, at most kMostSteps. Waits for the
  /// first submission, and returns what step() returns; follow() then gives the choices of the
  /// later steps. No sequence has a mask or keeps logits, and each has room in its context for
  /// `count` tokens more.
  std::vector<Choice> steps(std::span<const uint32_t> slots, uint32_t count, uint32_t together);
  static constexpr uint32_t kMostSteps = 32;
  /// After step(): the choice behind the next draft token, to the bits of a step that feeds it, if
  /// the sequence chose that draft token itself; nothing where it chose another, or no draft token
  /// is left. After steps(): the choice of the next step, for which it waits.
  std::optional<Choice> follow(uint32_t slot);
  /// Replaces the id that a slot chose last.
  void replace_choice(uint32_t slot, uint32_t id);

  /// Tokens whose keys and values a slot holds.
  std::span<const uint32_t> tokens(uint32_t slot) const { return state_.ids(slot); }
  /// Replaces the sequence of a slot. The cache stays as far as both begin alike, without the last
  /// id; feed() takes the ids behind it, or step() the first of them.
  void rewrite(uint32_t slot, std::span<const uint32_t> ids);

  /// The logits of the last choice of a slot that keeps_logits, until the next pass.
  std::vector<float> logits(uint32_t slot) const;

  /// How many tokens' keys and values a slot holds.
  uint32_t length(uint32_t slot) const { return state_.length(slot); }
  /// Frees a slot. keep: its pages stay in the cache for others until they are needed.
  void end(uint32_t slot, bool keep);

  /// Copies the tokens of a slot and its KV cache or states to CPU memory.
  SavedSequence save(uint32_t slot);
  /// Puts a saved sequence into the cache through a free slot, for sequences that continue it.
  /// Throws ModelError when it is of another network, or has more tokens than the context.
  void restore(uint32_t slot, const SavedSequence& saved, std::span<const float> adapters);
  /// Exchanges two slots and all that they hold.
  void exchange(uint32_t a, uint32_t b);

  /// Tokens of the pass that feeds `tokens` of a prompt from `held` on, the padding included.
  uint32_t pass_tokens(uint32_t held, uint32_t tokens) const;

  /// Throws LogitsError with the reason why a sequence's logits are not finite.
  [[noreturn]] void refuse(uint32_t slot);

  /// The program of a decode step over all slots, for a look at its nodes.
  const Program& step_program();

  /// Frees the programs of all passes, unless a SequenceTask has the slots. Not between steps() and
  /// follow().
  void trim();

  /// Throws SettingError while a SequenceTask has the slots.
  void require_free() const;
  void lend(bool lent) { lent_ = lent; }

  const DecoderState& state() const { return state_; }
  double build_seconds() const { return programs_.build_seconds(); }
  /// Pipelines of all decode steps and prefill passes, before any of them is built.
  std::vector<PipelineKey> pipelines() const;

 private:
  static BatchShape batch_of(const SlotShape& shape);
  static BatchLayout plan(const DecoderNetwork& network, const SlotShape& shape);
  /// The passes that take most memory.
  static std::vector<RowsPass> planned_passes(const DecoderNetwork& network,
                                              const SlotShape& shape);
  Program& prepare(const RowsPass& pass);
  void run(const RowsPass& pass);
  /// Has a step compute these slots' sequences alone.
  void run_only(std::span<const uint32_t> slots);
  void rest(uint32_t slot);
  /// For how many rows a step over these slots chooses its kernels.
  uint32_t selected_rows(std::span<const uint32_t> slots) const;
  /// Waits for the steps of steps() that were submitted ahead: all of them, or the first `count`.
  void settle() const;
  void settle(uint32_t count) const;
  /// The choice of a row of a pass behind `count` tokens.
  Choice shown_choice(const RowsPass& pass, uint32_t row, uint32_t count) const;
  /// The last choice of a slot in a pass, which the CPU's copy of control takes over.
  Choice take_choice(const RowsPass& pass, uint32_t slot);
  /// Updates the CPU's copy of control after a choice.
  Choice take_over(uint32_t slot, Choice choice);
  /// Lend rows of a step to draft tokens, and take them back after it.
  void lend_rows(const Draft& draft);
  void take_back(const RowsPass& pass, const Draft& draft);
  void push_table(uint32_t slot);
  /// A number for a mix of adapter scales. Sequences with different mixes share no pages.
  uint32_t mix_of(std::span<const float> adapters);
  /// Keys by which pages are kept: tokens with the number of the adapter mix with which they were
  /// computed. Empty where no other sequence may read the pages, for example where layers keep a
  /// state.
  std::vector<uint32_t> keys(std::span<const uint32_t> tokens, uint32_t mix) const;
  /// The keys of a slot's first tokens.
  std::vector<uint32_t> keys(uint32_t slot, uint32_t tokens) const;
  void exchange_states(uint32_t a, uint32_t b);
  /// The tokens of a slot as prefix sharing compares them.
  std::vector<uint32_t> told(uint32_t slot, uint32_t tokens) const;
  /// Whether the state that a sequence leaves is kept for the next one: layers keep a state, which
  /// cannot be shared like pages, and one slot has all memory to itself.
  bool keeps_states() const { return !state_.rewinds() && shape_.slots == 1; }
  /// Begins behind a state that is kept.
  void adopt_state(uint32_t slot);
  /// Copies the states of the only slot to kept_states_, or back.
  void copy_states(bool keep);
  /// The memory of a layer's cache that the first tokens of a slot take, in order; of one that
  /// keeps a state, the state.
  std::vector<BufferView> memory_of(size_t layer, uint32_t slot, uint32_t tokens) const;
  /// Has words [first, end) of control written to the device before the next pass.
  void push(uint64_t first, uint64_t end) { changes_.emplace_back(first, end); }
  /// Marks what the next pass needs besides. Then no word is marked twice: two updates of a word
  /// in one slice would need a barrier between them.
  void push_pass(const RowsPass& pass);
  /// Marks for upload what stands in control of a slot's sequence and does not change from pass to
  /// pass.
  void push_sequence(uint32_t slot);

  SlotShape shape_;
  DecoderState state_;
  bool changed_ = true;                                 // control, by the CPU, before the history
  std::vector<std::pair<uint64_t, uint64_t>> changes_;  // words that the device has not seen
  SlotPages pages_;
  std::vector<std::vector<float>> mixes_;  // adapter scales, by number
  std::vector<uint32_t> mix_;              // adapter mix of each slot
  /// SlotSequence::identity of each slot whose prompt has one.
  std::vector<std::vector<uint32_t>> identity_;
  PassPrograms programs_;
  Buffer exchanged_;
  std::vector<bool> keeps_logits_, masked_, exact_, reuses_, drafts_;
  /// Steps that were submitted ahead: the pass, and the tickets of its submissions with the number
  /// of steps up to the end of each.
  struct Ahead {
    RowsPass pass;
    uint32_t count = 0;
    std::vector<std::pair<Ticket, uint32_t>> submissions;
  };
  Ahead ahead_;
  /// The tokens to which a state of the only slot belongs.
  struct KeptState {
    std::vector<uint32_t> told;
    uint32_t mix = 0;
  };
  std::optional<KeptState> left_;    // state in the slot's own memory, after its sequence ended
  std::optional<KeptState> kept_;    // state in kept_states_: that behind the last prompt
  std::vector<Buffer> kept_states_;  // a layer each
  bool lent_ = false;
  /// For each slot: the row of the last pass in which it chose last, and the draft tokens of that
  /// pass that are left for follow().
  struct Checked {
    uint32_t row = 0;
    struct Token {
      uint32_t id = 0, row = 0;
      Choice behind;
    };
    std::vector<Token> left;  // the next one is the last
    uint32_t steps = 0;       // steps of steps() that are left
  };
  std::vector<Checked> checked_;
};

}  // namespace mulciber
