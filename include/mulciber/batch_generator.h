// Continuous batching: many texts on one language model, each of which joins, grows and leaves
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
  /// load, key_values, context (of each text) and on_plan. sequences: texts that grow at once; a
  /// request beyond them waits for a place.
  GeneratorOptions generator;
  /// Tokens whose keys and values there is memory for, of all texts together; 0: a context for each
  /// of `sequences`. Memory is given out in pages of a few tokens as texts grow, and what texts
  /// begin with alike is stored once, so that many short texts fit where few contexts would; so do
  /// long ones of models that have a sliding window in every layer, for what lies before it is not
  /// kept. Where pages run out, the text that came last gives way and is computed again later: its
  /// answer stays the same. At least a context, otherwise SettingError.
  uint64_t cache_tokens = 0;
  /// Tokens of prompts that one step takes in at most, so that texts under way need not wait for
  /// another's long prompt; 0: what suits the device.
  uint32_t prompt_tokens = 0;
  /// A draft model (BatchRequest::draft): a smaller one whose tokens are the same, piece by piece.
  /// It has keys and values of as many texts and tokens.
  std::shared_ptr<const OpenModel> draft;
  /// Rows of a step that check proposals (BatchRequest::lookup), of all texts together, at most; 0:
  /// all places that no text has.
  uint32_t proposal_rows = 0;
};

/// A token of an answer.
struct BatchToken {
  uint32_t id = 0;
  /// The text that is certain now: whole characters of UTF-8. Empty while one is incomplete or may
  /// begin a stop text.
  std::string_view piece;
  /// Where BatchRequest::log_probabilities asked for them.
  std::optional<float> log_probability;
  std::span<const TokenProbability> likeliest;  // the largest first
};

struct BatchRequest {
  std::string prompt;
  bool add_special = true, parse_special = true;  // as GenerateOptions
  std::vector<uint32_t> prompt_ids;  // in place of these three, where there are some: of tokens()
  /// As GenerateOptions::pictures. Where there are prompt_ids, these hold all of their tokens: they
  /// are of a text that expand_prompt() gave.
  std::vector<std::shared_ptr<const PreparedPicture>> pictures;
  std::optional<Sampling> sampling;  // not given: default_sampling()
  /// Of chance: another for each answer that is drawn with one seed.
  uint32_t stream = 0;
  uint32_t max_new_tokens = 0;    // 0: as many as the context has room for
  std::vector<std::string> stop;  // texts that end the answer and are no part of it
  bool ignore_end = false;
  /// Where the prompt goes on from an earlier answer (the next turn of a conversation), take the
  /// keys and values that steps of decoding computed for it, while they are there, instead of
  /// computing them anew. It is quicker, and their sums are rounded otherwise: the answer then no
  /// longer depends on the request alone, and of tokens that are likely alike to within rounding
  /// another may be chosen.
  bool reuse_answers = false;
  /// Added to the logits of these ids, after penalties; -infinity forbids one. At most
  /// kMostLogitBiases.
  std::vector<std::pair<uint32_t, float>> logit_bias;
  /// As GenerateOptions::grammar.
  std::optional<Grammar> grammar;
  /// As GenerateOptions::adapters: texts of one batch may have different ones.
  std::optional<std::vector<AdapterScale>> adapters;
  /// Speculative decoding, as GenerateOptions::lookup and proposals, and with draft by the
  /// generator's draft model where there is one. Tokens that are proposed are checked in places
  /// that no text has, in the same step, each by the kernels and in the order of sums of a step
  /// that feeds it: an answer is the one without, bit for bit. Where all places have texts, and of
  /// models whose layers keep a state, nothing is proposed.
  uint32_t lookup = 0;
  bool draft = true;
  uint32_t proposals = 0;
  /// How many of the likeliest tokens on_token is told of, at most kMostLikeliest; not given: no
  /// probabilities at all.
  std::optional<uint32_t> log_probabilities;

  /// Called by step(), in this order. They may call submit() and cancel(), and must not throw.
  std::function<void(size_t done, size_t total)> on_prompt;
  std::function<void(const BatchToken&)> on_token;
  /// Once for every request that submit() took, last. The piece that a stop text held back comes
  /// with it.
  std::function<void(const Generation&, std::string_view last_piece)> on_end;
  /// In place of on_end: the logits of this request were NaN or infinite (LogitsError), or no token
  /// leads on in its grammar (ModelError).
  std::function<void(const std::exception&)> on_error;
};
constexpr size_t kMostLogitBiases = 300;
constexpr uint32_t kMostLikeliest = 20;

/// Since the generator was made.
struct BatchStatistics {
  double load_seconds = 0;
  uint64_t requests = 0, ended = 0, cancelled = 0;
  uint64_t prompt_tokens = 0, reused_tokens = 0, new_tokens = 0;
  uint64_t pictures = 0;       // or parts of such, whose embeddings were computed
  double picture_seconds = 0;  // what that took
  uint64_t gave_way = 0;       // texts, each time that pages ran out
  /// Of memory for keys and values: how many there are, how many tokens of one, and how many hold
  /// what texts under way need.
  uint64_t pages = 0, page_tokens = 0, pages_used = 0;
  uint64_t steps = 0;      // of decoding
  uint64_t row_steps = 0;  // texts that took part, added up: over steps, the mean size of a batch
  uint64_t proposed_tokens = 0;  // by BatchRequest::lookup and draft
  uint64_t accepted_tokens = 0;  // of these, that the model chose too
  double prefill_seconds = 0, decode_seconds = 0, build_seconds = 0;
  uint64_t weight_bytes = 0, predicted_device_bytes = 0, peak_device_bytes = 0;
};

/// What BatchGenerator::attention() keeps, and what goes on meanwhile.
struct BatchAttentionOptions {
  std::optional<uint32_t> layer;  // of this one alone; not given: of all
  bool mean = false;              // over the heads of a layer, which then counts as one
  std::optional<std::vector<AdapterScale>> adapters;  // as BatchRequest::adapters
  /// Looked at between slices of the pass; once true, there is no result.
  const std::atomic<bool>* cancel = nullptr;
  /// Called between slices, of some 20 ms each: it may submit, cancel and step(), and so texts
  /// under way need not wait for the whole pass.
  std::function<void()> between;
};

/// A language model that many texts share. Not thread-safe: one thread submits, steps and cancels.
///
/// An answer depends on its request alone, bit for bit: not on who else is there, on when they
/// came, nor on what was held of an earlier prompt that began alike, but for
/// BatchRequest::reuse_answers.
class MULCIBER_API BatchGenerator {
 public:
  /// Throws as TextGenerator's.
  BatchGenerator(std::shared_ptr<Device> device, std::shared_ptr<const OpenModel> model,
                 const BatchGeneratorOptions& options = {});
  ~BatchGenerator();
  BatchGenerator(BatchGenerator&&) noexcept;
  BatchGenerator& operator=(BatchGenerator&&) noexcept;

  /// Takes a request; it joins at a step to come, in the order of submission. The number names it
  /// for cancel(). Throws ModelError when the prompt has no tokens or leaves no room in the
  /// context, SettingError when a setting is out of its range: nothing is kept of it then.
  uint64_t submit(BatchRequest request);
  /// Ends a request at the next step(), whose on_end says GenerateEnd::kCancelled. One that has
  /// ended already is left alone.
  void cancel(uint64_t request);
  /// Does what one turn of the device can: takes in a part of one prompt, and makes every text
  /// that has its prompt a token longer. False when there is nothing to do. Throws DeviceError when
  /// the device is lost; LogitsError ends only the request whose logits are not finite (on_error).
  bool step();

  /// As TextGenerator::score(), between two steps. Has keys and values of its own, of the longest
  /// text so far.
  TextScores score(std::span<const ScoreInput> inputs, const ScoreOptions& options = {});
  /// What the tokens of a text read of one another: a pass over them beside the texts that grow,
  /// none of which it changes. Nothing once cancelled. Throws ModelError where there are no tokens,
  /// more than the context has, maps of more than kMostAttentionWeights, or ids that are not the
  /// model's; SettingError for a layer that is not there; DeviceError where the maps do not fit.
  std::optional<TokenAttention> attention(std::span<const uint32_t> ids,
                                          const BatchAttentionOptions& options = {});

  /// Requests that have a place, and that wait for one.
  size_t running() const;
  size_t waiting() const;

  /// As TextGenerator's.
  size_t count_tokens(const std::string& prompt, bool add_special = true,
                      bool parse_special = true) const;
  std::vector<uint32_t> tokens(const std::string& text, bool add_special = true,
                               bool parse_special = true) const;
  std::string text(std::span<const uint32_t> ids) const;
  std::string token_text(uint32_t id) const;
  std::optional<std::string> chat_prompt(std::span<const ChatMessage> messages) const;
  Sampling default_sampling() const;
  const BatchStatistics& statistics() const;
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
