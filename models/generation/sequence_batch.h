// Several sequences of unequal length over one decoder-only network: their KV cache, and the
// programs that prefill and decode them.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "models/generation/pass_programs.h"
#include "ops/sampling.h"
#include "runtime/pipeline.h"

namespace mulciber {

enum class SequenceEnd {
  kIdle,   // was given no prompt
  kStop,   // chose an id that ends it
  kLimit,  // chose as many ids as it may
  kFull,   // the cache has no room for more
  kCancelled,
};

/// Embeddings in a buffer of the caller, (count, D) f32, for tokens of a prompt from `first` on.
struct PromptRows {
  uint32_t first = 0, count = 0;
  BufferView from;
};

class CompletionGrammar;

struct SequenceRequest {
  /// Ids per row, behind those that the row holds already; a row without any is left as it is.
  std::vector<std::vector<uint32_t>> prompts;
  /// For start(), which has one row: embeddings in the order of their tokens, which are kNoTokenId
  /// in the prompt.
  std::vector<PromptRows> embeddings;
  /// For generate() with one row, where the network sees images: such embeddings in CPU memory.
  std::vector<GivenRows> given;
  /// The identity of row 0's prompt, as long as the prompt: identity() returns it later. Empty: the
  /// prompt.
  std::vector<uint32_t> identity;
  bool states = false;  // passes keep the hidden states before the output product
  /// Most ids to choose per row. 0: prompts are prefilled, and nothing is chosen.
  uint32_t max_new_tokens = 0;
  std::vector<Sampling> sampling;  // how each row chooses; empty: the likeliest id, always
  /// The scales that were last given to use_adapters() for its rows.
  std::vector<float> adapters;
  /// Random number streams, one for each text of a seed; empty: all 0.
  std::vector<uint32_t> streams;
  /// The grammar of each row, or nullptr; empty: rows may choose any id.
  std::vector<CompletionGrammar*> grammars;
  std::vector<uint32_t> stops;        // at most kMostStops
  uint32_t steps_per_submission = 0;  // 0: as many as suit the device
  const std::atomic<bool>* cancel = nullptr;
  std::function<void(size_t done, size_t total)> on_prompt;  // prefilled tokens
  std::function<void(uint32_t row, uint32_t id)> on_token;
};

struct SequenceResult {
  struct Row {
    std::vector<uint32_t> ids;  // the one that ended the row included
    SequenceEnd end = SequenceEnd::kIdle;
  };
  std::vector<Row> rows;
  uint64_t prompt_tokens = 0;
  uint32_t steps = 0;  // decode steps, after prefill
  double build_seconds = 0, prefill_seconds = 0, decode_seconds = 0;
  double first_token_seconds = 0;  // from the call
  double grammar_seconds = 0;  // part of decode_seconds: making and uploading masks, following ids
};

/// The tokens of a row and its KV cache or states, in CPU memory.
struct SavedSequence {
  std::vector<uint32_t> ids;                   // its tokens
  DataType type = DataType::kF32;              // type of the caches
  std::vector<std::vector<std::byte>> layers;  // (tokens, columns) each
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

class SequenceTask;

/// Not thread-safe. Must not outlive the device or the network's weights.
class SequenceBatch {
 public:
  /// Throws DeviceError kOutOfMemory when the batch does not fit. memory_limit: bytes; 0: what is
  /// available; none: the caller has planned and checked the memory.
  SequenceBatch(Device& device, const DecoderNetwork& network, const BatchShape& shape,
                std::optional<uint64_t> memory_limit = 0);

  /// Device memory that a batch takes, its programs' arenas included, before anything is allocated.
  /// The network's weights may be shapes alone.
  static uint64_t predict_bytes(const Capabilities& device, const DecoderNetwork& network,
                                const BatchShape& shape);

  const BatchShape& shape() const { return state_.shape(); }
  /// Tokens of a row whose keys and values are in the cache. The id that generate() chose last is
  /// not among them: feed it before the next prompt.
  uint32_t length(uint32_t row) const { return state_.length(row); }
  /// The ids of these tokens.
  std::span<const uint32_t> ids(uint32_t row) const { return state_.ids(row); }
  /// The ids of row 0, with SequenceRequest::identity in place of prompts that had one.
  std::vector<uint32_t> identity() const;
  /// Sets the LoRA scales of a row from now on, as set_adapters(). Where they change, the row
  /// becomes empty.
  void use_adapters(uint32_t row, std::span<const float> scales);
  /// The LoRA scales of a row, as they stand in the control buffer.
  std::span<const uint32_t> adapter_scales(uint32_t row) const {
    return state_.adapter_scales(row);
  }
  /// Drops the tokens of a row from `length` on. Where layers keep a state, the batch has a copy of
  /// the state behind the last prompt alone, and only if it has one row: the row is cut to the end
  /// of that prompt, or becomes empty.
  void truncate(uint32_t row, uint32_t length);

  /// Per layer: (rows, context, columns) keys and values, for a pass of the caller's over row 0;
  /// hold() then sets the tokens of the row. Only for networks without states.
  const std::vector<Tensor>& caches() const { return state_.tensors().caches; }
  void hold(std::span<const uint32_t> ids);

  /// Copy the tokens of a row and its KV cache or states out of the batch and back, for another
  /// time, another batch of the same network, or another row: restore(1, save(0)) copies row 0 to
  /// row 1. restore() throws ModelError when they are of another network, or more tokens than the
  /// context.
  SavedSequence save(uint32_t row);
  void restore(uint32_t row, const SavedSequence& saved);

  /// Throws SettingError while a task of start() has the batch.
  void require_free() const;

  /// Prefills the prompts and lets every row that got one choose its next ids. The choices of a row
  /// depend on its tokens, settings and seed alone: neither on the batch composition nor on the
  /// steps per submission. Throws ModelError when a prompt does not fit the row's context,
  /// LogitsError when logits are NaN or infinite: every row is empty then; and the ModelError of a
  /// grammar.
  SequenceResult generate(const SequenceRequest& request);

  /// Starts the stages of generate() on a batch of one row, to be run in slices. The task has the
  /// batch to itself until it is destroyed. Throws as generate(), except for logits that are not
  /// finite and for grammars behind the first id: SequenceTask::finish() throws these.
  std::unique_ptr<SequenceTask> start(SequenceRequest request, const SequenceOutputs& outputs = {});

  /// Pipelines of the programs of all lengths; nothing is allocated or compiled.
  std::vector<PipelineKey> pipelines() const;

  /// The program of a decode step, for a look at its nodes.
  Program& step() { return program({1, PassOutput::kChoice}); }

 private:
  friend class SequenceTask;
  struct Run;
  struct Pass;
  /// The passes that take most memory.
  static std::vector<RowsPass> planned_passes(const BatchShape& shape, const BatchLayout& layout);
  PassPrograms::Built& built(const DecoderPass& pass) {
    return programs_.built({0, shape().rows, shape().rows, pass});
  }
  Program& program(const DecoderPass& pass) { return built(pass).program; }
  /// Where such a pass leaves an output that it keeps.
  BufferView output_of(const DecoderPass& shape, Tensor PassTensors::*kept);
  /// How many tokens of the only row's prompt, from `taken` on, one kind of pass takes, and which
  /// kind: a pass over ids, or over one of the request's embeddings, which begin at `rows`.
  struct Kind {
    uint32_t tokens;
    std::optional<BufferView> rows;
  };
  Kind kind_of_tokens(const SequenceRequest& request, size_t taken) const;
  /// Checks a request, and writes the state before its first pass.
  void begin(Run& run);
  /// Writes the inputs of the next prefill pass to words_. No value once all prompts are prefilled.
  std::optional<Pass> next_pass(Run& run);
  void report_prompt(const Run& run) const;
  /// The shapes of a single row's passes over its prompt.
  std::set<DecoderPass> passes(const SequenceRequest& request) const;
  void prefill(Run& run);
  void decode(Run& run);
  /// Decodes with a grammar: the CPU reads every choice before the next step.
  void decode_by_grammar(Run& run, Program& step);
  /// Writes the masks of the rows' next choices. A row that has come to the end of its grammar
  /// stops.
  void set_masks(Run& run);
  void drain(Run& run, uint32_t steps);
  /// Sets how each row ended. Throws as generate().
  void finish(Run& run);
  /// Throws where a row ended because its logits were not finite.
  void check_logits(const Run& run);
  /// Uploads what the CPU changes between two steps by a grammar.
  void push_step(Run& run);
  /// Copies the states of the only row to kept_, or back.
  void copy_states(bool keep);
  /// Copies the states of the only row to kept_, where there are any.
  void keep_states();

  DecoderState state_;
  std::vector<Buffer> kept_;  // states of the only row, as they were behind kept_length_ tokens
  uint32_t kept_length_ = 0;  // 0: nothing is kept
  std::vector<uint32_t> identity_;  // row 0's, up to the end of its last prompt
  PassPrograms programs_;
  bool in_task_ = false;
};

}  // namespace mulciber
