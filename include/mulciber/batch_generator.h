// Continuous batching: many sequences share one language model, and each joins and leaves the batch
// between two steps of the others. No Vulkan headers are needed. Errors are the types of
// mulciber/error.h; nothing is printed.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "mulciber/device.h"
#include "mulciber/grammar.h"
#include "mulciber/open_model.h"
#include "mulciber/text_generator.h"

namespace mulciber {

struct BatchGeneratorOptions {
  /// load, key_values, context (per sequence) and on_plan are used. sequences: the number of batch
  /// slots; a request waits until one is free.
  GeneratorOptions generator;
  /// Capacity of the paged KV cache in tokens, for all sequences together; 0: a context for each of
  /// `sequences`. Pages are allocated as sequences grow, and a shared prefix is stored once, so
  /// many short sequences fit in the memory of few contexts. Models with a sliding window in every
  /// layer free the pages before the window. When pages run out, the request submitted last is
  /// preempted and computed again later; its completion does not change. Less than a context throws
  /// SettingError.
  uint64_t cache_tokens = 0;
  /// Chunked prefill: the most prompt tokens of one step, so that running sequences need not wait
  /// for another's long prompt; 0: chosen for the device.
  uint32_t prompt_tokens = 0;
  /// Draft model for speculative decoding (BatchRequest::draft): a smaller model with an identical
  /// vocabulary. Its KV cache is as large, in sequences and tokens.
  std::shared_ptr<const OpenModel> draft;
  /// Most rows of a step that verify draft tokens (BatchRequest::prompt_lookup, draft), for all
  /// sequences together; 0: all free slots.
  union {
    uint32_t draft_rows = 0;
    [[deprecated("use draft_rows")]] uint32_t proposal_rows;
  };
  /// Most decode steps in one submission, at most 32; 0: chosen for the device. A call of step()
  /// submits several, on GPUs in several submissions that run ahead of the tokens that the CPU has
  /// read, while no request waits or is prefilled, and no running sequence has a grammar, log
  /// probabilities or speculative decoding. Completions do not depend on it.
  uint32_t steps_per_submission = 0;
};

struct BatchRequest {
  std::string prompt;
  bool add_special = true, parse_special = true;  // see GenerateOptions
  std::vector<uint32_t> prompt_ids;               // used instead of the three above unless empty
  /// Images of the prompt, see GenerateOptions::images. prompt_ids then include the images'
  /// tokens: tokenize the result of expand_prompt().
  std::vector<std::shared_ptr<const PreparedImage>> images;
  std::optional<Sampling> sampling;  // none: default_sampling()
  /// Random number stream, see GenerateOptions::stream.
  uint32_t stream = 0;
  uint32_t max_new_tokens = 0;    // 0: as many as the context has room for
  std::vector<std::string> stop;  // texts that end the completion and are not part of it
  bool ignore_end = false;
  /// When the prompt continues an earlier completion (the next turn of a conversation), reuse the
  /// keys and values that decode steps computed for that completion, while they are cached. Reuse
  /// is faster, but decode rounds sums differently from prefill: the completion then no longer
  /// depends on the request alone, and tokens whose probabilities are equal to within rounding may
  /// be chosen differently.
  union {
    bool reuse_completions = false;
    bool reuse_answers [[deprecated("use reuse_completions")]];
  };
  /// Biases of ids, see GenerateOptions::logit_bias.
  std::vector<std::pair<uint32_t, float>> logit_bias;
  /// Grammar of the completion, see GenerateOptions::grammar.
  std::optional<Grammar> grammar;
  /// Adapters of this request, see GenerateOptions::adapters. Requests of one batch may use
  /// different ones.
  std::optional<std::vector<AdapterScale>> adapters;
  /// Speculative decoding: prompt_lookup and draft_tokens are those of GenerateOptions; draft uses
  /// the generator's draft model, if it has one. Free slots verify the draft tokens within the
  /// step, by the kernels and with the order of sums of a decode step, so a completion equals the
  /// one without speculative decoding bit for bit. No tokens are drafted while all slots are taken,
  /// nor for models whose layers keep a recurrent state.
  union {
    uint32_t prompt_lookup = 0;
    [[deprecated("use prompt_lookup")]] uint32_t lookup;
  };
  bool draft = true;
  union {
    uint32_t draft_tokens = 0;
    [[deprecated("use draft_tokens")]] uint32_t proposals;
  };
  /// Log probabilities, see GenerateOptions::log_probabilities.
  std::optional<uint32_t> log_probabilities;

  /// step() calls these callbacks, in this order. They may call submit() and cancel(), and must not
  /// throw.
  std::function<void(size_t done, size_t total)> on_prompt;
  std::function<void(const BatchToken&)> on_token;
  /// The last call for every request that submit() accepted. last_piece: text that was held back
  /// because it might have begun a stop text.
  std::function<void(const Generation&, std::string_view last_piece)> on_end;
  /// Called instead of on_end when the logits of this request were NaN or infinite (LogitsError),
  /// or its grammar allows none of the model's tokens (ModelError).
  std::function<void(const std::exception&)> on_error;
};

/// Counts and times since the generator was created.
struct BatchGeneratorStatistics {
  double load_seconds = 0;
  uint64_t requests = 0, ended = 0, cancelled = 0;
  uint64_t prompt_tokens = 0, reused_tokens = 0, new_tokens = 0;
  union {
    uint64_t images = 0;  // images, or tiles of images, that the vision tower encoded
    uint64_t pictures [[deprecated("use images")]];
  };
  union {
    double image_seconds = 0;  // time spent encoding them
    double picture_seconds [[deprecated("use image_seconds")]];
  };
  union {
    uint64_t preemptions = 0;  // because pages ran out
    [[deprecated("use preemptions")]] uint64_t gave_way;
  };
  /// Paged KV cache: number of pages, tokens in a page, and pages that running sequences hold.
  uint64_t pages = 0, page_tokens = 0, pages_used = 0;
  uint64_t steps = 0;      // decode steps
  uint64_t row_steps = 0;  // sum of the batch size over decode steps
  union {
    uint64_t draft_tokens = 0;  // of BatchRequest::prompt_lookup and draft
    [[deprecated("use draft_tokens")]] uint64_t proposed_tokens;
  };
  uint64_t accepted_tokens = 0;  // draft tokens that the model chose too
  double prefill_seconds = 0, decode_seconds = 0, build_seconds = 0;
  uint64_t weight_bytes = 0, predicted_device_bytes = 0, peak_device_bytes = 0;
};
using BatchStatistics [[deprecated("use BatchGeneratorStatistics")]] = BatchGeneratorStatistics;

/// Which maps BatchGenerator::attention() returns, and what it calls while it runs.
struct BatchAttentionOptions {
  std::optional<uint32_t> layer;  // maps of this layer only; none: of all layers
  bool mean = false;              // average the heads of a layer, which then counts as one head
  std::optional<std::vector<AdapterScale>> adapters;  // see BatchRequest::adapters
  /// Read between slices of the pass; once true, there is no result.
  const std::atomic<bool>* cancel = nullptr;
  /// Called between slices, which take about 20 ms each. It may submit(), cancel() and step(), so
  /// that running sequences need not wait for the whole pass.
  std::function<void()> between;
};

/// A language model that many sequences share. Not thread-safe: one thread submits, steps and
/// cancels.
///
/// A completion depends on its request alone, bit for bit: not on the batch composition, on the
/// order of submission, nor on prefixes cached from earlier prompts.
/// BatchRequest::reuse_completions is the exception.
class MULCIBER_API BatchGenerator {
 public:
  /// Throws as TextGenerator's constructor.
  BatchGenerator(std::shared_ptr<Device> device, std::shared_ptr<const OpenModel> model,
                 const BatchGeneratorOptions& options = {});
  ~BatchGenerator();
  BatchGenerator(BatchGenerator&&) noexcept;
  BatchGenerator& operator=(BatchGenerator&&) noexcept;

  /// Queues a request, which joins the batch at a later step, in the order of submission. Returns
  /// the number that cancel() takes. Throws ModelError when the prompt has no tokens or fills the
  /// context, and SettingError when a setting is out of its range; the request is then dropped.
  uint64_t submit(BatchRequest request);
  /// Ends a request at the next step(); on_end then gets GenerateEnd::kCancelled. Does nothing for
  /// a request that has ended.
  void cancel(uint64_t request);
  /// Computes a chunk of one prompt, and one decode step of all sequences whose prompts are
  /// complete, or several (BatchGeneratorOptions::steps_per_submission). Returns false when there
  /// is nothing to do. Throws DeviceError when the device is lost. Logits that are not finite end
  /// only their request (on_error).
  bool step();

  /// Scores texts between two steps, see TextGenerator::score(). It uses a KV cache of its own, as
  /// long as the longest text so far.
  TextScores score(std::span<const ScoreInput> inputs, const ScoreOptions& options = {});
  /// Attention maps of a text, from a pass of its own, which changes no running sequence. No value
  /// when cancelled. Throws ModelError for no tokens, more tokens than the context, more weights
  /// than kMostAttentionWeights, or ids outside the vocabulary; SettingError for a layer that does
  /// not exist; DeviceError when the maps do not fit the device's memory.
  std::optional<TokenAttention> attention(std::span<const uint32_t> ids,
                                          const BatchAttentionOptions& options = {});

  /// Frees device memory that is kept for later requests, see TextGenerator::trim(). Requests go
  /// on. Not from a callback of step().
  uint64_t trim();

  /// Requests in a slot, and requests that wait for one.
  size_t running() const;
  size_t waiting() const;

  /// These functions do what TextGenerator's functions of these names do.
  size_t count_tokens(const std::string& prompt, bool add_special = true,
                      bool parse_special = true) const;
  std::vector<uint32_t> tokens(const std::string& text, bool add_special = true,
                               bool parse_special = true) const;
  std::string text(std::span<const uint32_t> ids) const;
  std::string token_text(uint32_t id) const;
  std::optional<std::string> chat_prompt(std::span<const ChatMessage> messages) const;
  Sampling default_sampling() const;
  const BatchGeneratorStatistics& statistics() const;
  GeneratorDescription describe() const;
  std::vector<std::string> adapters() const;
  uint32_t context() const;
  uint32_t vocabulary() const;
  std::string family() const;

 private:
  friend class PipelineWarmup;  // mulciber/model_loader.h
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mulciber
