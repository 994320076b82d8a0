// Places for sequences over one decoder-only network, each filled, made longer and emptied apart
// from the others. What is computed of a sequence depends neither on its place nor on what the
// others hold: a part of a prompt goes through alone, and a step of decoding chooses its kernels as
// for all places, however few take part.
#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "models/generation/decoder_programs.h"
#include "models/generation/slot_pages.h"
#include "runtime/device_copy.h"
#include "runtime/pipeline.h"
#include "runtime/program.h"

namespace mulciber {

struct SlotShape {
  uint32_t slots = 1;
  uint32_t context = 0;  // tokens of a sequence
  uint32_t chunk = 1;    // of a prompt in one pass, at most: one of kPassLengths
  uint32_t biases = 0;   // ids of a sequence that may have one
  /// Tokens of all sequences and of what is kept of earlier ones: at least a context; 0: a context
  /// for every slot.
  uint64_t tokens = 0;
};

/// A sequence before its prompt is in.
struct SlotSequence {
  std::span<const uint32_t> prompt;
  /// The prompt as it is told from others: where tokens have embeddings of a caller's, numbers that
  /// are no token's, and others for other embeddings. Empty: the prompt.
  std::span<const uint32_t> identity = {};
  /// Of what is kept of earlier sequences it takes keys and values only where passes over its own
  /// prompt would give these bits: not those of tokens that were chosen.
  bool exact = true;
  Sampling sampling = {};
  uint32_t stream = 0;
  LogitBiases biases = {};
  std::span<const float> adapters = {};  // as set_adapters()
  bool keeps_logits = false;             // of every choice, as the model gives them
};

/// Not thread-safe. Must not outlive the device or the network's weights.
class SequenceSlots {
 public:
  /// What a sequence chose: no id where its logits are not finite.
  using Choice = std::optional<uint32_t>;

  /// Throws DeviceError kOutOfMemory when it does not fit. memory_limit: bytes; 0: what is
  /// available.
  SequenceSlots(Device& device, const DecoderNetwork& network, const SlotShape& shape,
                uint64_t memory_limit = 0);
  /// Device memory that it takes, before anything is allocated. The network's weights need shapes
  /// alone.
  static uint64_t predict_bytes(const Capabilities& device, const DecoderNetwork& network,
                                const SlotShape& shape);
  /// The same with no more tokens than a device binds of a layer at once. Throws ModelError where
  /// not even a context fits.
  static SlotShape bindable(const Capabilities& device, const DecoderNetwork& network,
                            SlotShape shape);
  const SlotShape& shape() const { return shape_; }

  /// Takes a slot that is free. Gives the tokens of the prompt that are kept from earlier
  /// sequences; the others are to be fed. Throws SettingError when a setting is out of its range.
  uint32_t begin(uint32_t slot, const SlotSequence& sequence);
  /// The same later: another may have fed meanwhile what both begin with.
  uint32_t adopt(uint32_t slot);
  /// What a sequence may choose from now on, a bit for each id; empty: anything, as begin() leaves
  /// it.
  void set_mask(uint32_t slot, std::span<const uint32_t> mask);
  /// Pages that sequences can still get, that one of so many tokens would take of them which begins
  /// so, and that a slot has.
  uint32_t pages_left() const { return pages_.available(); }
  uint32_t page_tokens() const { return pages_.positions(); }
  /// identity: as SlotSequence has it.
  uint32_t pages_needed(std::span<const uint32_t> identity, std::span<const float> adapters,
                        bool exact, uint32_t tokens);
  /// Numbers that an identity may have besides those of tokens: below it, and above the vocabulary.
  static constexpr uint32_t kIdentities = 1 << 24;
  /// Pages that a sequence has at once until it has so many tokens, at most: where all layers have
  /// windows, it leaves those that lie before them.
  uint32_t most_pages(uint32_t tokens) const { return pages_.most_pages(tokens); }
  uint32_t pages_held(uint32_t slot) const { return pages_.held(slot); }
  /// Room for `tokens` tokens more of a sequence; false where no page is left for them. feed() and
  /// step() need it for theirs.
  bool reserve(uint32_t slot, uint32_t tokens);

  /// Feeds the next `count` tokens of the prompt, up to chunk; `chooses`: they are the last, and
  /// the first id is chosen. given: embeddings in the prompt, those of these tokens among them.
  Choice feed(uint32_t slot, uint32_t count, bool chooses, std::span<const GivenRows> given = {});
  /// Places, from the first on, that a step over sequences in the first `places` computes: few
  /// numbers, so that there are few recordings, of which the next is at most half as large again.
  uint32_t step_places(uint32_t places) const;
  /// Tokens that may follow the last one of a sequence. Each is fed by a row of the step that no
  /// sequence has, at the position that it would have: as a step would once it is chosen.
  struct Proposals {
    uint32_t slot = 0;
    std::vector<uint32_t> ids;
    std::vector<uint32_t> rows;  // slots that are free, one for each id
    std::vector<IdMask> masks;   // of what is chosen behind each; of sequences that have one
  };
  /// Whether a model can take back what proposals did: one whose layers keep no states.
  bool can_propose() const { return !network_.decoder.keeps_states(); }
  /// The next id of every sequence in `slots`, which have chosen one before. There must be room for
  /// those that are proposed as well.
  std::vector<Choice> step(std::span<const uint32_t> slots,
                           std::span<const Proposals> proposals = {});
  /// After a step: what a sequence chose behind a proposal that it had chosen itself, to the bits
  /// of a step that feeds it; nothing where it had chosen another, or no more was proposed.
  std::optional<Choice> follow(uint32_t slot);
  /// Puts another id in the place of the one that a slot chose last.
  void replace_choice(uint32_t slot, uint32_t id);

  /// Tokens that a slot holds.
  std::span<const uint32_t> tokens(uint32_t slot) const {
    return words_.values(layout_.state.history_of(slot).part(0, length(slot)));
  }
  /// Has a sequence be another from now on. What is held stays as far as both begin alike, but for
  /// the last id; feed() takes those behind it, or step() the first of them.
  void rewrite(uint32_t slot, std::span<const uint32_t> ids);

  /// What the last choice of a slot that keeps_logits was made from, until the next pass.
  std::vector<float> logits(uint32_t slot) const;

  /// Tokens whose keys and values are there.
  uint32_t length(uint32_t slot) const { return words_.get(layout_.state.positions, slot); }
  /// Frees a slot; `keep`: what it holds stays for others until its pages are needed.
  void end(uint32_t slot, bool keep);
  /// Exchanges two places and all that they hold.
  void exchange(uint32_t a, uint32_t b);

  /// Tokens of the pass that feeds `tokens` of a prompt from `held` on, the padding included.
  uint32_t pass_tokens(uint32_t held, uint32_t tokens) const;

  /// Why a sequence whose choice was none has no finite logits: throws LogitsError.
  [[noreturn]] void refuse(uint32_t slot);

  double build_seconds() const { return build_seconds_; }
  /// Those of all steps and of passes over prompts, before any of them is built.
  std::vector<PipelineKey> pipelines() const;

 private:
  struct Pass {
    uint32_t first = 0, slots = 1;  // [first, first + slots)
    bool prompt = false;            // else a step of decoding
    DecoderPass pass;
    auto operator<=>(const Pass&) const = default;
  };
  struct Built {
    Pass pass;
    Program program;
    PassTensors kept;
  };
  static BatchShape batch_of(const SlotShape& shape);
  static BatchLayout plan(const DecoderNetwork& network, const SlotShape& shape);
  static PassTensors add_nodes(ProgramBuilder& builder, const DecoderNetwork& network,
                               const BatchLayout& layout, const BatchTensors& tensors,
                               const SlotShape& shape, const Pass& pass);
  static uint64_t arena_bytes(const Capabilities& device, const DecoderNetwork& network,
                              const SlotShape& shape, const BatchLayout& layout,
                              const BatchTensors& tensors);
  Built& built(const Pass& pass);
  void run(const Pass& pass);
  /// What a row of a pass chose behind `count` tokens.
  Choice shown_choice(const Pass& pass, uint32_t row, uint32_t count) const;
  /// What a slot of a pass chose last, which the host's copy of control takes over.
  Choice take_choice(const Pass& pass, uint32_t slot);
  /// The host's copy of control after a choice.
  Choice take_over(uint32_t slot, Choice choice);
  /// Has rows of a step check what is proposed, and no longer.
  void lend_rows(const Proposals& proposals);
  void take_back(const Pass& pass, const Proposals& proposals);
  /// The first tokens of a page in a layer's cache.
  BufferView part_of_page(size_t layer, uint32_t page, uint32_t tokens) const;
  void push_table(uint32_t slot);
  /// A number for what sequences add of adapters. Those with another share nothing with them.
  uint32_t mix_of(std::span<const float> adapters);
  /// Tokens as pages are kept by: with the number of what was added when they were computed. None
  /// where nobody else may read what is computed of them, such as a state.
  std::vector<uint32_t> keys(std::span<const uint32_t> tokens, uint32_t mix) const;
  /// Of a slot's first tokens.
  std::vector<uint32_t> keys(uint32_t slot, uint32_t tokens) const;
  void exchange_states(uint32_t a, uint32_t b);
  /// Has words [first, end) of control written to the device before the next pass.
  void push(uint64_t first, uint64_t end) { changes_.emplace_back(first, end); }
  void push_changes();
  /// What stands in control of a slot's sequence behind what changes from pass to pass.
  void push_sequence(uint32_t slot);

  Device& device_;
  const DecoderNetwork& network_;
  SlotShape shape_;
  BatchLayout layout_;
  ControlWords words_;   // of control: the device's between two calls
  bool changed_ = true;  // by the host, before the history
  std::vector<std::pair<uint64_t, uint64_t>> changes_;  // words that the device has not seen
  SlotPages pages_;
  std::vector<std::vector<float>> mixes_;  // of adapters, by number
  std::vector<uint32_t> mix_;              // of each slot
  /// Of each slot, of prompts that have one: SlotSequence::identity.
  std::vector<std::vector<uint32_t>> identity_;
  Buffer control_, progress_, arena_, exchanged_, given_;
  std::vector<Buffer> cache_buffers_;
  BatchTensors tensors_;
  std::list<Built> programs_;  // the one used last first
  std::vector<bool> keeps_logits_, masked_, exact_;
  /// Of each slot: the row of the last pass that it chose last in, and proposals of that pass that
  /// are left to follow().
  struct Checked {
    uint32_t row = 0;
    struct Token {
      uint32_t id = 0, row = 0;
      Choice behind;
    };
    std::vector<Token> left;  // the next last
  };
  std::vector<Checked> checked_;
  double build_seconds_ = 0;
};

}  // namespace mulciber
