// Several sequences of unequal length over one decoder-only network: their keys and values, and
// programs that make them longer.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "models/generation/decoder_programs.h"
#include "ops/sampling.h"
#include "runtime/pipeline.h"
#include "runtime/program.h"

namespace mulciber {

enum class SequenceEnd {
  kIdle,   // was given nothing
  kStop,   // chose an id that ends it
  kLimit,  // chose as many ids as it may
  kFull,   // the cache has no room for more
  kCancelled,
};

/// Embeddings in memory of a caller's, (count, D) f32, for tokens of a prompt from `first` on.
struct PromptRows {
  uint32_t first = 0, count = 0;
  BufferView from;
};

class AnswerGrammar;

struct SequenceRequest {
  /// Ids per row, behind what the row holds already; a row without any is left as it is.
  std::vector<std::vector<uint32_t>> prompts;
  /// Of the only row, of start(): in the order of their tokens, which are kNoTokenId in the prompt.
  std::vector<PromptRows> embeddings;
  /// Of generate(), and of the only row: the same from the host, of a network that sees.
  std::vector<GivenRows> given;
  /// Of row 0, as long as its prompt: what identity() says of it later. Empty: the prompt.
  std::vector<uint32_t> identity;
  bool states = false;  // passes keep what the output product takes
  /// Ids to choose per row at most. 0: the prompts are taken in, nothing is chosen.
  uint32_t max_new_tokens = 0;
  std::vector<Sampling> sampling;  // how each row chooses; empty: the likeliest id, always
  /// What was last given to use_adapters() for its rows.
  std::vector<float> adapters;
  std::vector<uint32_t> streams;  // of chance, another for each text of one seed; empty: all 0
  /// What each row may choose, or nullptr; empty: anything.
  std::vector<AnswerGrammar*> grammars;
  std::vector<uint32_t> stops;        // at most kMostStops
  uint32_t steps_per_submission = 0;  // 0: what suits the device
  const std::atomic<bool>* cancel = nullptr;
  std::function<void(size_t done, size_t total)> on_prompt;  // tokens taken in
  std::function<void(uint32_t row, uint32_t id)> on_token;
};

struct SequenceResult {
  struct Row {
    std::vector<uint32_t> ids;  // the one that ended it included
    SequenceEnd end = SequenceEnd::kIdle;
  };
  std::vector<Row> rows;
  uint64_t prompt_tokens = 0;
  uint32_t steps = 0;  // of decoding, after the prompts
  double build_seconds = 0, prefill_seconds = 0, decode_seconds = 0;
  double first_token_seconds = 0;  // from the call
  double grammar_seconds = 0;      // of decode_seconds: masks found and handed over, ids followed
};

/// What a row holds, on the host.
struct SavedSequence {
  std::vector<uint32_t> ids;                   // its tokens
  DataType type = DataType::kF32;              // of the cache
  std::vector<std::vector<std::byte>> layers;  // (tokens, columns) each
};

/// Memory of a caller's for rows of floats: row i goes to place i % rows.
struct RowRing {
  BufferView first;   // place 0
  uint32_t rows = 0;  // 0: nobody wants them
};

/// What a task leaves of each step.
struct SequenceOutputs {
  RowRing logits;  // row i: that choice i was made from
  RowRing states;  // row i: of the token at position i, what the output product takes
};

class SequenceTask;

/// Not thread-safe. Must not outlive the device or the network's weights.
class SequenceBatch {
 public:
  /// Throws DeviceError kOutOfMemory when it does not fit. memory_limit: bytes; 0: what is
  /// available; none: the caller has planned and checked it.
  SequenceBatch(Device& device, const DecoderNetwork& network, const BatchShape& shape,
                std::optional<uint64_t> memory_limit = 0);

  /// Device memory that a batch takes, its programs' arenas included, before anything is allocated.
  /// The network's weights need shapes alone.
  static uint64_t predict_bytes(const Capabilities& device, const DecoderNetwork& network,
                                const BatchShape& shape);

  const BatchShape& shape() const { return shape_; }
  /// Tokens of a row whose keys and values are there. An id that generate() chose last is not among
  /// them: feed it before what follows.
  uint32_t length(uint32_t row) const { return words_.get(layout_.state.positions, row); }
  /// Those tokens.
  std::span<const uint32_t> ids(uint32_t row) const;
  /// The same of row 0, with SequenceRequest::identity for tokens of prompts that had one.
  std::vector<uint32_t> identity() const;
  /// Has a row add so much of the network's adapters from now on, as set_adapters(); what it holds
  /// is forgotten where that changes.
  void use_adapters(uint32_t row, std::span<const float> scales);
  /// Those of a row, as they stand in control.
  std::span<const uint32_t> adapter_scales(uint32_t row) const;
  /// Forgets what a row holds from token `length` on. Where the network keeps a state, no other is
  /// there than that behind the last prompt, of a batch of one row: it forgets what came behind
  /// that, or all.
  void truncate(uint32_t row, uint32_t length);

  /// Per layer: (rows, context, columns) keys and values, for a pass of a caller's over row 0;
  /// hold() then says what its tokens are. Of a network without states.
  const std::vector<Tensor>& caches() const { return tensors_.caches; }
  void hold(std::span<const uint32_t> ids);

  /// Keys and values of a row's tokens, or their state, for another time, another batch of the same
  /// network, or another row: a copy of row 0 in row 1 is restore(1, save(0)). restore() throws
  /// ModelError when they are of another network, or too many.
  SavedSequence save(uint32_t row);
  void restore(uint32_t row, const SavedSequence& saved);

  /// Throws SettingError where a task of start() has it.
  void require_free() const;

  /// Takes the prompts in and lets every row that got one choose its next ids. What a row chooses
  /// depends on its tokens, settings and seed alone: neither on its company nor on the steps per
  /// submission. Throws ModelError when a prompt does not fit the row's room, LogitsError when
  /// logits are NaN or infinite: every row is empty then; and ModelError of a grammar.
  SequenceResult generate(const SequenceRequest& request);

  /// The same of a batch of one row, to be run in slices: what generate() would do, stage by stage.
  /// The batch is the task's until that is destroyed. Throws as generate(), but for logits and
  /// what a grammar allows behind the first id: SequenceTask::finish() does.
  std::unique_ptr<SequenceTask> start(SequenceRequest request, const SequenceOutputs& outputs = {});

  /// What programs of all lengths are dispatched with; nothing is allocated or compiled.
  std::vector<PipelineKey> pipelines() const;

  /// The programs of decoding one token, for a look at their nodes.
  Program& step() { return program({1, PassOutput::kChoice}); }

 private:
  friend class SequenceTask;
  struct Run;
  struct Pass;
  struct Built {
    Program program;
    PassTensors kept;
  };
  /// wanted: those that must not make room for it.
  Built& built(const DecoderPass& shape, const std::set<DecoderPass>& wanted = {});
  Program& program(const DecoderPass& shape) { return built(shape).program; }
  /// Where such a pass leaves what it keeps.
  BufferView place(const DecoderPass& shape, Tensor PassTensors::*kept);
  /// Tokens of the only row's prompt from `taken` on that one kind of pass takes, and which: those
  /// that have ids, or those of one of the request's embeddings, and where these begin.
  struct Kind {
    uint32_t tokens;
    std::optional<BufferView> rows;
  };
  Kind kind_of_tokens(const SequenceRequest& request, size_t taken) const;
  /// Memory for the embeddings of a pass, where a request has any.
  void need_rows();
  /// Checks a request, and writes the state before it.
  void begin(Run& run);
  /// Writes what the next pass over the prompts reads to words_; none once all are taken in.
  std::optional<Pass> next_pass(Run& run);
  void report_prompt(const Run& run) const;
  /// The shapes of a single row's passes over its prompt.
  std::set<DecoderPass> passes(const SequenceRequest& request) const;
  void prefill(Run& run);
  void decode(Run& run);
  /// As decode(), with a look at every choice before the next.
  void decode_by_grammar(Run& run, Program& step);
  /// Writes what the rows may choose next. A row that has come to the end of its grammar stops.
  void set_masks(Run& run);
  void drain(Run& run, uint32_t steps);
  /// How each row ended. Throws as generate().
  void finish(Run& run);
  /// Throws where a row ended because its logits were not finite.
  void check_logits(const Run& run);
  void push();
  void pull();
  /// Between two steps of which the host looks at each: what it changes, and words [0, end) of
  /// control, beyond which the device changes nothing.
  void push_step(Run& run);
  void pull(uint64_t end);
  /// The first `tokens` tokens of a row in a layer's cache; of a state all, where there are any.
  BufferView part_of_cache(size_t layer, uint32_t row, uint32_t tokens) const;
  /// Copies the states of the only row to kept_, or back.
  void copy_states(bool keep);
  /// Keeps them as they are, where there are any.
  void keep_states();

  Device& device_;
  const DecoderNetwork& network_;
  BatchShape shape_;
  BatchLayout layout_;
  ControlWords words_;  // of control, while nothing runs
  Buffer control_, progress_, rows_, given_;
  std::vector<Buffer> cache_buffers_;
  std::vector<Buffer> kept_;  // states of the only row, as they were behind kept_length_ tokens
  uint32_t kept_length_ = 0;  // 0: nothing is kept
  std::vector<uint32_t> identity_;  // of row 0, up to the end of its last prompt
  BatchTensors tensors_;
  std::map<DecoderPass, Built> programs_;
  bool in_task_ = false;
};

}  // namespace mulciber
