// Sequences of one language model with continuous batching: behind BatchGenerator, and behind
// TextGenerator, which gives it one prompt at a time.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/generation/batch_draft.h"
#include "models/generation/completion.h"
#include "models/generation/completion_grammar.h"
#include "models/generation/sequence_request.h"
#include "models/generation/sequence_slots.h"
#include "models/generation/token_scorer.h"
#include "mulciber/batch_generator.h"

namespace mulciber {

/// A request and its completion so far.
struct BatchSequence {
  uint64_t number = 0;
  SequenceRequest request;
  /// The text that is prefilled: the prompt, or what a context shift left of prompt and completion,
  /// whose first `shifted` tokens are part of it or were left out.
  std::vector<uint32_t> prompt;
  size_t shifted = 0;
  std::vector<ShownTile> tiles;    // tiles of its images
  std::vector<uint32_t> identity;  // see SlotSequence
  std::optional<CompletionGrammar> grammar;
  bool cancelled = false;
  /// Whether the sequence had a slot before. A preempted sequence begins again and replays the
  /// tokens of its completion, of which it has the first `replayed`, without callbacks.
  bool begun = false;
  size_t replayed = 0;
  size_t prompt_told = 0;                   // prompt tokens reported to on_prompt
  uint64_t draft_tokens = 0, accepted = 0;  // draft tokens
  /// Tokens that the draft model drafts next. Their number grows while all are accepted, because
  /// each costs the draft model a step.
  uint32_t drafted = 4;
  bool by_draft = false;  // the last draft tokens are the draft model's
  /// Prompt tokens that were in the cache already. A sequence that is preempted before its first
  /// token may count tokens twice.
  uint64_t reused = 0;
  std::string piece;  // characters that became certain last
  Completion completion;

  BatchSequence(uint64_t name, SequenceRequest asked, const Tokenizer& tokenizer,
                ShownPrompt shown);
  /// Prompt and completion so far, without what context shifts left out.
  std::vector<uint32_t> ids() const;
  /// Tokens of the completion behind `prompt`.
  uint32_t said() const { return static_cast<uint32_t>(completion.so_far().ids.size() - shifted); }
  bool replays() const { return replayed < completion.so_far().ids.size(); }
};

struct GenerationBatch : SharedGenerator {
  using Sequence = std::unique_ptr<BatchSequence>;
  /// A slot: its sequence and what it does.
  struct Slot {
    Sequence sequence;
    /// Whether the whole prompt is prefilled, and the sequence takes part in decode steps.
    bool decodes = false;
  };

  std::shared_ptr<SequenceSlots> slots;
  std::shared_ptr<BatchDraft> draft_model;
  std::optional<TokenScorer> scorer;
  std::vector<Slot> by_slot;  // by slot
  std::deque<Sequence> waiting;
  BatchGeneratorStatistics statistics;
  uint32_t context = 0;
  uint32_t draft_rows = 0;  // rows for draft tokens in a step, at most
  uint32_t steps_per_submission = 1;
  uint64_t next_number = 1;
  uint64_t parts = 0;  // prompt chunks fed so far
  /// The sequence that left its slot last, as far as its keys and values are in the cache.
  struct Left {
    std::vector<uint32_t> ids, identity;
    std::vector<float> adapters;
  };
  Left left;

  GenerationBatch() = default;
  explicit GenerationBatch(const SharedGenerator& other) : SharedGenerator(other) {}
  /// Makes slots for the loaded model. memory_limit: as SequenceSlots takes it.
  void open_slots(const SlotShape& shape, std::optional<uint64_t> memory_limit);
  std::vector<int32_t> encode(const std::string& input, bool add_special, bool parse_special) const;
  /// Throws SettingError for settings out of their range.
  void check(const SequenceRequest& request) const;
  /// Queues a request. Returns its number. prompt: fits the context, unless the context shifts.
  uint64_t submit(SequenceRequest request, std::vector<int32_t> prompt,
                  const PreparedImages& images);
  void cancel(uint64_t number);
  bool step();

  std::optional<TokenAttention> attention(std::span<const uint32_t> ids,
                                          const BatchAttentionOptions& options);
  uint64_t trim();
  GeneratorDescription describe() const;

  /// Ends cancelled sequences. Returns true where there were any.
  bool end_cancelled();
  /// Gives slots to waiting sequences, in their order.
  void admit();
  /// Whether there are pages for a sequence beside those that the sequences in slots are expected
  /// to need.
  bool has_room(const BatchSequence& sequence);
  /// Tokens that a sequence is expected to have, prompt and completion.
  uint32_t expected(const BatchSequence& sequence) const;
  /// Reserves pages for `tokens` more tokens of a sequence, and preempts the newest sequences for
  /// them. Returns false where the sequence itself was preempted.
  bool make_room(uint32_t slot, uint32_t tokens);
  /// Leaves the oldest tokens out of a sequence that has filled its context.
  void shift(uint32_t slot);
  /// Gives a slot to a sequence, or gives it anew.
  void begin(uint32_t slot, Sequence sequence);
  /// The grammar of a sequence behind the first `count` tokens of its completion.
  std::optional<CompletionGrammar> grammar_of(const BatchSequence& sequence, size_t count) const;
  /// Preempts a sequence: it gives its slot back, waits ahead of newer sequences and begins again.
  void preempt(uint32_t slot);
  /// The slot whose prompt is prefilled next: the one with the fewest tokens left, so that short
  /// prompts need not wait for long ones and first tokens come early. Every fourth time it is the
  /// oldest, so that long prompts advance too.
  std::optional<uint32_t> next_prompt();
  /// Prefills a chunk of one prompt, or computes embeddings of an image in it. Returns false where
  /// no prompt is left.
  bool feed();
  /// Computes embeddings for the tokens [first, end) of a slot's prompt, one tile of an image a
  /// call, so that other sequences need not wait for all tiles. Returns false where there is
  /// nothing to compute.
  bool embed_tile(uint32_t slot, uint32_t first, uint32_t end);
  /// The embeddings that a prompt whose first `held` tokens are prefilled still needs, as far as
  /// they are computed. Drops the others.
  static std::vector<GivenRows> given_rows(BatchSequence& sequence, uint32_t held);
  /// Moves decoding sequences to the first slots, where a step over few of them costs less.
  void close_ranks();
  bool decode();
  /// Whether a sequence takes the tokens of later steps: it has not ended, and no callback has
  /// cancelled it.
  bool takes_tokens(uint32_t slot) const;
  /// Decode steps that are submitted at once: several where no sequence waits for a step to end,
  /// and nothing about the next one depends on the CPU. Reserves pages for them.
  struct Steps {
    uint32_t count = 1, together = 1;  // of one submission
  };
  Steps steps_ahead(std::span<const uint32_t> decoding);
  /// Most draft tokens behind a sequence, by its settings and limits.
  uint32_t most_draft_tokens(uint32_t slot) const;
  /// Draft tokens behind each decoding sequence, from the draft model or by prompt lookup. rows:
  /// how many rows of the step can verify them.
  std::vector<std::vector<uint32_t>> draft_tokens_behind(std::span<const uint32_t> decoding,
                                                         size_t rows);
  /// The draft tokens that the next step verifies: as many as free slots have rows for, and as
  /// pages suffice for.
  std::vector<SequenceSlots::Draft> drafts_to_verify(std::span<const uint32_t> decoding);
  /// Sets the masks of the choices behind draft tokens by the grammar of their sequence. Drops the
  /// first draft token that the grammar does not allow or that ends the sequence, and all behind
  /// it.
  void set_masks(SequenceSlots::Draft& draft) const;
  /// Takes the choices behind draft tokens that a sequence chose itself.
  void follow(const SequenceSlots::Draft& draft);
  /// Takes the id that a sequence chose, or fails the sequence where its logits are not finite.
  void take(uint32_t slot, const SequenceSlots::Choice& choice);
  /// Sets the mask of a slot by its sequence's grammar. Returns whether the sequence is complete.
  bool set_mask(uint32_t slot);
  /// Takes the choice of a sequence that replays its tokens after preemption.
  void replay(uint32_t slot, uint32_t choice);
  /// Ends a sequence by the exception that is being handled.
  void fail(uint32_t slot, bool keep);
  /// Frees a slot. keep: its pages stay in the cache for other sequences until they are needed.
  Sequence leave(uint32_t slot, bool keep = true);
  /// Makes the last callback of a sequence that has ended.
  void finish(BatchSequence& sequence, GenerateEnd end);
};

struct BatchGenerator::Impl : GenerationBatch {
  void start(std::shared_ptr<Device> on, std::shared_ptr<const OpenModel> files,
             const BatchGeneratorOptions& options);
};

}  // namespace mulciber
