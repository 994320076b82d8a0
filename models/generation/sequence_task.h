// The continuation of one sequence, stage by stage, for applications that run it in slices.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "models/generation/sequence_slots.h"
#include "runtime/slices.h"

namespace mulciber {

class CompletionGrammar;

/// Embeddings in a buffer of the caller, (count, D) f32, for tokens of a prompt from `first` on.
struct PromptRows {
  uint32_t first = 0, count = 0;
  BufferView from;
};

/// A caller's ring buffer for rows of floats: row i goes to index i % rows.
struct RowRing {
  BufferView first;   // index 0
  uint32_t rows = 0;  // 0: no rows are wanted
};

/// Outputs of each step that a task copies to the caller.
struct SequenceOutputs {
  RowRing logits;  // row i: the logits of choice i
  RowRing states;  // row i: the hidden state of the token at position i, before the output product
};

struct SequenceTaskRequest {
  /// Ids of the prompt; tokens with the caller's embeddings are kNoTokenId.
  std::vector<uint32_t> prompt;
  std::vector<PromptRows> embeddings;  // in the order of their tokens
  Sampling sampling;
  uint32_t stream = 0;
  LogitBiases biases;
  std::vector<float> adapters;      // see set_adapters()
  uint32_t max_new_tokens = 0;      // at least 1
  std::vector<uint32_t> stops;      // ids that end the sequence
  CompletionGrammar* grammar = {};  // null: any id may be chosen; outlives the task
  std::function<void(size_t done, size_t total)> on_prompt;  // prefilled tokens
  /// Returns whether the sequence goes on.
  std::function<bool(uint32_t id)> on_token;
};

/// Has slot 0 of its slots, which nobody else may use meanwhile. Its stages are prefill passes,
/// then decode steps, of which a few are given ahead of those that have ended; with a grammar none,
/// because the mask of a step depends on the token before. Calls on_prompt and on_token from
/// ended().
class SequenceTask : public StageSource {
 public:
  /// Throws ModelError when the prompt does not fit the context, or holds ids that are not the
  /// model's.
  SequenceTask(std::shared_ptr<SequenceSlots> slots, SequenceTaskRequest request,
               const SequenceOutputs& outputs = {});
  ~SequenceTask() override;

  bool next(Stage& stage) override;
  void ended(uint64_t stages) override;
  bool done() const override { return done_; }
  /// Stages that were given and have not ended count as not begun.
  void cancel() { stopped_ = true; }
  /// Whether the grammar's text is complete.
  bool complete() const { return complete_; }
  /// Frees the slot of a task that is done, or cancelled and with nothing on the device; the tokens
  /// that have ended stay in the cache. Returns the ids that were chosen. Throws LogitsError when
  /// logits are NaN or infinite, and the ModelError of the grammar.
  std::vector<uint32_t> finish();

 private:
  static constexpr uint32_t kAhead = 4;
  /// The next pass over the prompt's tokens from `taken` on.
  struct Feed {
    uint32_t tokens = 0;
    std::optional<BufferView> rows;  // the embeddings of these tokens
    bool chooses = false;
  };
  Feed next_feed(uint32_t taken) const;
  /// Builds the programs of all passes over the prompt: stages of a frame must not build any.
  void build();
  SequenceSlots::TaskPass kind(const Feed& feed) const;
  void feed_stage(Stage& stage);
  void step_stage(Stage& stage);
  /// Adds the copies of the logits that choice `number` is made from, and of the states of the
  /// pass's tokens, the first of which stands at `position`.
  void take_outputs(Stage& stage, const RowsPass& pass, uint64_t number, uint64_t position,
                    uint64_t tokens) const;
  void take(const SequenceSlots::Choice& choice);
  /// Makes a call that may throw the ModelError of the grammar, which ends the sequence.
  template <typename Call>
  void by_grammar(const Call& call);
  void set_mask();

  std::shared_ptr<SequenceSlots> slots_;
  SequenceTaskRequest request_;
  SequenceOutputs outputs_;
  std::optional<BufferView> rows_;   // where the caller's embeddings are copied to
  RowsPass feed_, step_;             // the prefill pass given last, and a decode step
  uint32_t fed_ = 0;                 // tokens of feed_
  uint32_t taken_ = 0;               // tokens of the prompt for which passes were given, or reused
  uint64_t passes_ = 0, steps_ = 0;  // stages that were given
  uint64_t ended_ = 0;               // stages of both that have ended
  std::vector<uint32_t> ids_;
  std::exception_ptr refused_;
  bool lost_ = false;  // logits are not finite
  bool complete_ = false;
  bool stopped_ = false, done_ = false, finished_ = false;
};

}  // namespace mulciber
