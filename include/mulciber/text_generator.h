// Text generation with decoder-only language models on any Vulkan device. No Vulkan headers are
// needed. Errors are the types of mulciber/error.h; nothing is printed.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
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
#include "mulciber/load_options.h"
#include "mulciber/open_model.h"
#include "mulciber/prompt_images.h"
#include "mulciber/sampling.h"
#include "mulciber/text_scores.h"

namespace mulciber {

/// Types of the KV cache. Sums over it stay in f32.
enum class KeyValueStorage {
  kF16,  // half the memory of f32, and not slower on any measured driver
  kF32,  // excludes LoadOptions::half_activations
  /// ggml's blocks of 32 8-bit integers that share an f16 scale: 17/32 of the memory of f16. It
  /// excludes half_activations and models whose head size is not a multiple of 32.
  kQ8_0,
};

/// An attention head; both indices count from 0.
struct HeadNumber {
  uint32_t layer = 0, head = 0;
};

/// Device memory that a model takes, predicted from its files.
struct MemoryPrediction {
  uint64_t weight_bytes = 0;
  uint64_t context_bytes = 0;    // KV cache and activations
  uint64_t key_value_bytes = 0;  // KV cache alone
};

struct GeneratorOptions {
  LoadOptions load;
  KeyValueStorage key_values = KeyValueStorage::kF16;
  /// Tokens of prompt and completion together; 0: the model's own context, at most 4096.
  uint32_t context = 0;
  /// Texts that generate_all() continues at a time; each takes the memory of a context.
  uint32_t sequences = 1;
  /// Attention heads whose output is replaced by zeros.
  std::vector<HeadNumber> masked_heads;
  /// Called once with the predicted memory, before it is checked and anything is loaded.
  std::function<void(const MemoryPrediction&)> on_plan = {};
};

/// A message of a conversation. role: "system", "user", "assistant" or "tool". Invalid UTF-8 is
/// read as U+FFFD.
struct ChatMessage {
  std::string role, content;
  /// Number of images before the content, for a vision-language model. GenerateOptions::images of
  /// the prompt lists the images of all messages, in their order.
  union {
    uint32_t images = 0;
    uint32_t pictures [[deprecated("use images")]];
  };
};

class TextGenerator;

/// A token of a completion.
struct BatchToken {
  uint32_t id = 0;
  /// Text that this token makes final: whole UTF-8 characters. Empty while a character is
  /// incomplete, or while the text may begin a stop text.
  std::string_view piece;
  /// Set where log_probabilities is given.
  std::optional<float> log_probability;
  std::span<const TokenProbability> likeliest;  // most probable first
};
constexpr uint32_t kMostLikeliest = 20;
constexpr size_t kMostLogitBiases = 300;

/// Most draft tokens that a decode step verifies behind a sequence.
constexpr uint32_t kMostDraftTokens = 7;
[[deprecated("use kMostDraftTokens")]] constexpr uint32_t kMostProposals = kMostDraftTokens;

struct GenerateOptions {
  /// None: TextGenerator::default_sampling(). generate() throws SettingError when a value is out of
  /// its range.
  std::optional<Sampling> sampling;
  /// Random number stream: give each completion drawn with one seed its own. Text i of
  /// generate_all() draws from stream + i.
  uint32_t stream = 0;
  uint32_t max_new_tokens = 0;    // 0: as many as the context has room for
  std::vector<std::string> stop;  // texts that end a completion and are not part of it
  bool add_special = true;        // add the model's first special tokens: <s>, <bos> ...
  bool parse_special = true;      // read special tokens that are spelled out in the prompt
  /// Token ids, used instead of the prompt's text and the two options above unless empty. With
  /// images they are those of tokens(), which include the images' tokens. Not for generate_all(),
  /// which takes lists of ids.
  std::vector<uint32_t> prompt_ids;
  /// Images from prepare_image(), one for each image_placeholder() of the prompt, in their
  /// order; they come first if the prompt has no placeholder. Only for generate(), without shift
  /// and attention. A draft model drafts nothing then, because it sees no images.
  std::vector<std::shared_ptr<const PreparedImage>> images;
  bool ignore_end = false;  // continue after the model's own end of text
  /// Biases added to the logits of these ids, after penalties; -infinity forbids an id. Where an id
  /// occurs twice, the last bias counts. At most kMostLogitBiases.
  std::vector<std::pair<uint32_t, float>> logit_bias;
  /// Log probabilities of each token and of so many most probable ones, at most kMostLikeliest, in
  /// Generation and for on_token; none: they are not computed. They are the model's, before
  /// sampling, penalties and biases. Not for tasks.
  std::optional<uint32_t> log_probabilities;
  /// Guided decoding: a mask allows only tokens that lead to a text of the grammar, and the model's
  /// end of text where a text is complete. When the grammar allows nothing more, the completion
  /// ends without a token for it. A completion that ends for another reason, such as its length, is
  /// a prefix of a text of the grammar. generate() throws ModelError when the grammar allows none
  /// of the model's tokens.
  std::optional<Grammar> grammar;
  /// Adapters of LoadOptions::adapters that are applied, with their scales; none: all, each with
  /// its own scale. generate() throws SettingError for an unknown or duplicate name, and for a
  /// scale that is NaN or infinite.
  std::optional<std::vector<AdapterScale>> adapters;
  /// Also return attention maps of prompt and completion, by one more pass over them after the
  /// completion. generate() throws ModelError, before it computes anything, when the maps would
  /// hold more than kMostAttentionWeights; without max_new_tokens the completion ends at that
  /// length instead.
  bool attention = false;
  /// Context shift: when prompt and completion fill the context, drop the oldest tokens and go on.
  /// The first `keep` tokens stay (at least the special tokens of add_special), half of the others
  /// are dropped, and keys and values of the rest are computed again, so that the model reads a
  /// text of just these tokens. A prompt that is too long loses its oldest tokens likewise. Only
  /// for generate(), without attention. keep: at most the context less 4, otherwise SettingError.
  bool shift = false;
  uint32_t keep = 0;
  /// Decode steps in one submission, 1 to 32; 0: chosen for the device. On GPUs several submissions
  /// run ahead of the tokens that the CPU has read. One step is submitted at a time with a grammar,
  /// log probabilities or speculative decoding, and while texts of generate_all() wait or are
  /// prefilled. The completion does not depend on it.
  uint32_t steps_per_submission = 0;
  /// Speculative decoding (Leviathan et al. 2023, arXiv:2211.17192): further rows of a decode step
  /// verify draft tokens. prompt_lookup: drafts the tokens that followed an earlier occurrence of
  /// so many of the latest tokens (or fewer, down to two) in prompt and completion; 0: off. draft:
  /// a draft model with an identical vocabulary, which must not be used meanwhile; prompt lookup is
  /// used only where it drafts nothing. draft_tokens: draft tokens of a step, 1 to
  /// kMostDraftTokens; 0: kMostDraftTokens for prompt lookup, and for the draft model a number that
  /// adapts to how many are accepted. A draft token is accepted if the model chooses it itself,
  /// with the random number of its position and the mask of the grammar. Draft tokens change no bit
  /// of a completion. Kernels are chosen for steps of kMostDraftTokens + 1 rows where prompt_lookup
  /// or draft is set, and for steps of one row otherwise, which may round sums differently: against
  /// a completion without speculative decoding, tokens whose probabilities are equal to within
  /// rounding may be chosen differently. Only for generate(), which throws SettingError where the
  /// model was loaded with GeneratorOptions::sequences above 1, or its layers keep a recurrent
  /// state. generate_all() and tasks ignore these options.
  union {
    uint32_t prompt_lookup = 0;
    [[deprecated("use prompt_lookup")]] uint32_t lookup;
  };
  TextGenerator* draft = nullptr;
  union {
    uint32_t draft_tokens = 0;
    [[deprecated("use draft_tokens")]] uint32_t proposals;
  };
  /// Read between submissions; once true, generate() returns the completion so far.
  const std::atomic<bool>* cancel = nullptr;
  /// Called with the numbers of computed and of all prompt tokens.
  std::function<void(size_t done, size_t total)> on_prompt;
  /// Called with each token of the completion. Text that was held back because it might have begun
  /// a stop text reaches on_text alone.
  std::function<void(const BatchToken&)> on_token;
  /// Called with each piece of the completion, after on_token: whole UTF-8 characters.
  std::function<void(std::string_view piece)> on_text;
};

enum class GenerateEnd {
  kEndOfText,    // the model's end-of-text token
  kStopText,     // one of GenerateOptions::stop occurred
  kTokenLimit,   // max_new_tokens is reached
  kContextFull,  // prompt and completion fill the context
  kCancelled,
};
/// Returns "end of text", "context full", ...
MULCIBER_API const char* name_of(GenerateEnd end);

/// Limit of weights in a TokenAttention: layers * heads * tokens^2.
constexpr uint64_t kMostAttentionWeights = 1 << 26;

/// Attention weights (after the softmax) of every layer and head.
struct TokenAttention {
  uint32_t layers = 0, heads = 0, length = 0;
  /// (layers, heads, length, length) row-major; row i: the weights of the query of token i.
  std::vector<float> weights;
  /// Sliding window of each layer: the number of latest tokens that a token attends to, itself
  /// included; 0: all.
  std::vector<uint32_t> windows;
  std::vector<std::string> tokens;  // readable text; U+2581 for a space that begins a word
};

/// The id that Generation::prompt_ids has for an embedding of PromptPart (mulciber/embedding.h).
constexpr uint32_t kNoTokenId = UINT32_MAX;

struct Generation {
  std::string text;
  std::vector<uint32_t> ids;  // the end-of-text token included
  std::vector<uint32_t> prompt_ids;
  /// Log probabilities for each of ids, where they were asked for.
  std::vector<TokenProbabilities> log_probabilities;
  GenerateEnd end = GenerateEnd::kCancelled;
  std::optional<TokenAttention> attention;  // the prompt's tokens, then the completion's
  /// Tokens of prompt and completion that GenerateOptions::shift left out of the context.
  uint64_t left_out = 0;
  /// Prompt tokens whose keys and values were reused from a cached prefix. GenerationTask: 0.
  uint64_t reused_tokens = 0;
  /// Draft tokens, and draft tokens that were accepted.
  union {
    uint64_t draft_tokens = 0;
    [[deprecated("use draft_tokens")]] uint64_t proposed_tokens;
  };
  uint64_t accepted_tokens = 0;
};

/// Counts and times of the last generate(), and of loading where marked "load".
struct GenerateStatistics {
  double load_seconds = 0;  // load: files to device
  /// Prompt tokens that the model read, without those that GenerateOptions::shift dropped at once.
  uint64_t prompt_tokens = 0;
  uint64_t reused_tokens = 0;  // prompt tokens whose keys and values were in the cache already
  uint64_t new_tokens = 0;
  /// Decode steps, also those that verified draft tokens and those that were submitted ahead and
  /// lie behind the last token. A step of generate_all() counts once for all texts in it.
  uint32_t decode_steps = 0;
  union {
    uint64_t draft_tokens = 0;  // of GenerateOptions::prompt_lookup and draft
    [[deprecated("use draft_tokens")]] uint64_t proposed_tokens;
  };
  uint64_t accepted_tokens = 0;  // draft tokens that the model chose too
  union {
    uint64_t images = 0;  // images, or tiles of images, that the vision tower encoded
    uint64_t pictures [[deprecated("use images")]];
  };
  union {
    double image_seconds = 0;  // time spent encoding them
    double picture_seconds [[deprecated("use image_seconds")]];
  };
  double build_seconds = 0;  // building and recording programs
  double prefill_seconds = 0;
  double decode_seconds = 0;       // recomputation of GenerateOptions::shift included
  double attention_seconds = 0;    // extra pass for GenerateOptions::attention
  double first_token_seconds = 0;  // since the call
  uint64_t weight_bytes = 0;       // load: on the device
  /// load: weights, KV cache and activations, predicted before allocating.
  uint64_t predicted_device_bytes = 0;
  uint64_t peak_device_bytes = 0;  // most bytes allocated at once
  uint64_t step_bytes = 0;  // bytes that a decode step must read and write with a full context
};

/// What a loaded language model is, and how it was loaded.
struct GeneratorDescription {
  std::string family;       // see TextGenerator::family()
  uint32_t context = 0;     // most tokens of prompt and completion together
  uint32_t sequences = 1;   // GeneratorOptions::sequences
  uint32_t vocabulary = 0;  // number of logits of a step
  uint32_t width = 0;       // elements of a token's hidden state, and of its embedding
  /// Layers, and attention heads of each; no heads: the layers keep a state.
  uint32_t layers = 0, heads = 0;
  KeyValueStorage key_values = KeyValueStorage::kF16;
  bool chat_template = false;         // the files have one, which chat_prompt() may refuse
  std::vector<uint32_t> end_ids;      // ids that end a text
  std::vector<std::string> adapters;  // names of LoadOptions::adapters, in their order
  Sampling default_sampling;          // see TextGenerator::default_sampling()
};

/// A language model: a Hugging Face folder or a GGUF file, on a device.
class MULCIBER_API TextGenerator {
 public:
  /// Loads a model. Throws ModelError when the files do not hold a language model or disagree, and
  /// DeviceError, before anything is loaded, when weights and context do not fit the device's
  /// memory.
  TextGenerator(std::shared_ptr<Device> device, const std::string& path,
                const GeneratorOptions& options = {});
  TextGenerator(std::shared_ptr<Device> device, std::shared_ptr<const OpenModel> model,
                const GeneratorOptions& options = {});
  ~TextGenerator();
  TextGenerator(TextGenerator&&) noexcept;
  TextGenerator& operator=(TextGenerator&&) noexcept;

  /// Makes a second conversation with this model. Its context is empty; context: its tokens, at
  /// most this one's; 0: as many. It shares the weights, and takes device memory only for its KV
  /// cache and activations, which statistics() predicts. Either may be destroyed first, and one
  /// thread uses both. Throws DeviceError when it does not fit the device's memory, SettingError
  /// for more tokens.
  TextGenerator conversation(uint32_t context = 0) const;

  /// Predicts the memory of a constructor with the same arguments. Throws as the constructor,
  /// except for memory that does not suffice.
  static MemoryPrediction predict(Device& device, const std::string& path,
                                  const GeneratorOptions& options = {});
  static MemoryPrediction predict(Device& device, const OpenModel& model,
                                  const GeneratorOptions& options = {});

  /// Continues a text (UTF-8). The longest prefix of the prompt that is still in the KV cache, of
  /// any earlier prompt and its completion, is reused, so a conversation may be passed from its
  /// start every time. Models whose layers keep a recurrent state reuse the last prompt, with or
  /// without its completion, where this one begins with all of it; with GeneratorOptions::sequences
  /// above 1 they reuse nothing. Throws ModelError when the prompt has no tokens, or leaves no room
  /// for another in the context (naming both numbers; nothing is truncated).
  Generation generate(const std::string& prompt, const GenerateOptions& options = {});
  /// Continues several texts by continuous batching, GeneratorOptions::sequences at a time: the
  /// next text begins when one ends, for whatever reason. Result i belongs to prompts[i]. The
  /// options apply to all texts. When sampling, text i draws from a random number stream of its
  /// own, whatever the batch composition. Prompts reuse cached prefixes as in generate().
  /// on_prompt, on_token and on_text are not called. statistics() then counts all texts together.
  std::vector<Generation> generate_all(std::span<const std::string> prompts,
                                       const GenerateOptions& options = {});
  /// Continues prompts of token ids, as generate_all() continues texts.
  std::vector<Generation> generate_all(std::span<const std::vector<uint32_t>> prompts,
                                       const GenerateOptions& options = {});

  /// Log probabilities of texts, or of continuations of contexts. Scoring has a KV cache of its
  /// own, so the conversation's cache is unchanged. The prefix that a text shares with the previous
  /// text is computed once. Throws ModelError, naming the text, when it has no tokens or more than
  /// context().
  TextScores score(std::span<const ScoreInput> inputs, const ScoreOptions& options = {});
  /// Hidden states of a text's tokens. layers: indices as HiddenStates counts them. Throws as
  /// score(), and ModelError when a layer does not exist.
  HiddenStates hidden_states(const std::string& text, std::span<const uint32_t> layers,
                             const ScoreOptions& options = {});

  /// Number of tokens of a prompt with these options (add_special, parse_special).
  size_t count_tokens(const std::string& prompt, const GenerateOptions& options = {}) const;
  /// Tokens of such a prompt, those of its images among them.
  std::vector<uint32_t> tokens(const std::string& prompt,
                               const GenerateOptions& options = {}) const;
  /// Text of tokens, without special ones. Throws ModelError for an id outside the vocabulary.
  std::string text(std::span<const uint32_t> ids) const;
  /// Readable text of a token, see TokenAttention::tokens. Throws ModelError for an id outside the
  /// vocabulary.
  std::string token_text(uint32_t id) const;

  /// Writes the tokens of the last completion and its prompt, with their keys and values, to a
  /// file. Other prefixes in the cache are not saved. load_cache() with the same model and settings
  /// puts the tokens into the cache, also in another process, so that a prompt with this prefix is
  /// not computed again, and returns their number. Throws ModelError when the file cannot be
  /// written; or when it is not such a file, is damaged, belongs to another model or other
  /// settings, or holds more than the context.
  void save_cache(const std::string& file) const;
  size_t load_cache(const std::string& file);
  /// Snapshot in memory, with the rules of save_cache(file). A snapshot taken before a device was
  /// lost can be restored on another device.
  std::vector<std::byte> save_cache() const;
  size_t load_cache(std::span<const std::byte> bytes);

  /// The prompt for the next completion in a conversation, by the model's chat template. It
  /// contains all special tokens: call generate() without add_special. No value if the files have
  /// no template (a base model). Throws ModelError when the template rejects the messages, for
  /// instance roles that do not alternate.
  std::optional<std::string> chat_prompt(std::span<const ChatMessage> messages) const;

  /// Sampling settings of generation_config.json (do_sample and its values; penalties then cover
  /// the whole text); otherwise greedy decoding.
  Sampling default_sampling() const;
  const GenerateStatistics& statistics() const;
  GeneratorDescription describe() const;
  /// Most tokens of prompt and completion together.
  uint32_t context() const;
  /// Names of LoadOptions::adapters that requests may select, in their order.
  std::vector<std::string> adapters() const;
  /// Number of logits of a step.
  uint32_t vocabulary() const;
  /// Elements of a token's hidden state, and of its embedding.
  uint32_t width() const;
  /// `model_type` of config.json, or the architecture of a GGUF file.
  std::string family() const;
  const std::shared_ptr<Device>& device() const;
  /// Frees device memory that is kept for later calls: the programs of decode steps and prefill
  /// passes, and the KV cache of score(). Weights, the conversation's KV cache and the programs of
  /// a running task stay. The next calls take longer, because they build it again. Returns the
  /// bytes that went back to the driver or the application's allocator, which may be fewer than
  /// were freed, because other allocations share their blocks.
  uint64_t trim();

 private:
  friend class AttentionTask;  // mulciber/embedding.h
  friend class GenerationTask;
  friend class ModelLoader;  // mulciber/model_loader.h
  friend class PipelineWarmup;
  struct Impl;
  explicit TextGenerator(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;  // tasks keep it too
};

}  // namespace mulciber
