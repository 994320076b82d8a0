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
#include <vector>

#include "mulciber/device.h"
#include "mulciber/grammar.h"
#include "mulciber/load_options.h"
#include "mulciber/open_model.h"
#include "mulciber/prompt_pictures.h"
#include "mulciber/sampling.h"
#include "mulciber/text_scores.h"

namespace mulciber {

/// How keys and values of the tokens in the context are kept. Sums over them stay in 32 bits.
enum class KeyValueStorage {
  kF16,  // half the memory of f32, and no slower on any driver measured
  kF32,  // not with LoadOptions::half_activations
  /// Blocks of 32 that share an f16 scale, as ggml's: 17/32 of the memory of f16. Not with
  /// half_activations, nor for models whose heads are not whole blocks.
  kQ8_0,
};

/// An attention head; both numbers count from 0.
struct HeadNumber {
  uint32_t layer = 0, head = 0;
};

/// Device memory a model takes, by its files alone.
struct MemoryPrediction {
  uint64_t weight_bytes = 0;
  uint64_t context_bytes = 0;    // keys and values of the context, and activations
  uint64_t key_value_bytes = 0;  // the former of these
};

struct GeneratorOptions {
  LoadOptions load;
  KeyValueStorage key_values = KeyValueStorage::kF16;
  /// Tokens of prompt and answer together; 0: what the model was made for, at most 4096.
  uint32_t context = 0;
  /// Texts that generate_all() continues together; each takes a context's memory.
  uint32_t sequences = 1;
  /// Heads that are switched off: zeros stand for what they read.
  std::vector<HeadNumber> masked_heads;
  /// Called once with what loading will take, before that is checked and anything is loaded.
  std::function<void(const MemoryPrediction&)> on_plan = {};
};

/// role: "system", "user", "assistant" or "tool". Bytes that are not UTF-8 count as U+FFFD.
struct ChatMessage {
  std::string role, content;
  /// Pictures that stand before the content, of a model that sees them. Which ones, the prompt's
  /// GenerateOptions::pictures say, those of the first message first.
  uint32_t pictures = 0;
};

class TextGenerator;

/// Most tokens that speculative decoding proposes at once.
constexpr uint32_t kMostProposals = 7;

struct GenerateOptions {
  /// Not given: TextGenerator::default_sampling(). Throws SettingError when a number is out of its
  /// range.
  std::optional<Sampling> sampling;
  uint32_t max_new_tokens = 0;    // 0: as many as the context has room for
  std::vector<std::string> stop;  // texts that end an answer and are no part of it
  bool add_special = true;  // begin with what the model expects in front of a text: <s>, <bos> ...
  bool parse_special = true;  // special tokens spelled out in the prompt count as such
  /// Of prepare_picture(), each for one picture_placeholder() of the prompt, in their order; of a
  /// prompt without any, in front of it. Only with generate() of a model loaded for one text, and
  /// without shift, attention and proposals.
  std::vector<std::shared_ptr<const PreparedPicture>> pictures;
  bool ignore_end = false;  // go on behind the model's own end of text
  /// What the answer may be: every token is chosen among those that lead to a text of the grammar,
  /// and the model's end of text among them where one is complete. An answer whose grammar allows
  /// nothing more has ended, without a token for it. One that ends for another reason, such as its
  /// length, is the beginning of such a text. generate() throws ModelError where no token of the
  /// model leads on.
  std::optional<Grammar> grammar;
  /// Which of LoadOptions::adapters are added, and how much; not given: each with its own scale.
  /// Throws SettingError for a name that none of them has, that stands twice, or a scale that is
  /// no number.
  std::optional<std::vector<AdapterScale>> adapters;
  /// Keep what the tokens of prompt and answer read of one another: one more pass over them once
  /// the answer is there. Throws ModelError, before anything is computed, where the maps would hold
  /// more than kMostAttentionWeights; without max_new_tokens the answer ends there.
  bool attention = false;
  /// When prompt and answer fill the context: go on without the oldest tokens. The first `keep`
  /// stay (at least what add_special put in front), half of the others is left out, and keys and
  /// values of the rest are computed again, so that the model sees a text of just these tokens. A
  /// prompt that is too long loses its oldest tokens likewise. Only with generate() and without
  /// attention. keep: at most the context less 4, otherwise SettingError.
  bool shift = false;
  uint32_t keep = 0;
  /// Steps of decoding in one submission, 1 to 32; 0: what suits the device. The answer does not
  /// depend on it.
  uint32_t steps_per_submission = 0;
  /// Speculative decoding (Leviathan et al. 2023, arXiv:2211.17192): tokens that follow are
  /// proposed, and one pass of the model checks them together. lookup: the tokens that followed
  /// where the latest `lookup` ones stood before in prompt and answer, or fewer of them, down to
  /// two; 0: not at all. draft: another model of the same vocabulary, which must not be used
  /// meanwhile; what it proposes comes before what is looked up. proposals: tokens of a pass, 1 to
  /// kMostProposals; 0: as many, and of a draft as many as pay. A proposal is taken where the model
  /// chooses that token itself, with the random number of its place: proposals change neither
  /// tokens nor, where they are drawn, their distribution. All tokens are chosen in passes over
  /// kMostProposals + 1, whatever is proposed. Their sums have another order than those of a step
  /// over one token, and where a layer has a sliding window, or a GPU divides long contexts among
  /// workgroups, one that depends on a token's place in the pass: there two tokens that are likely
  /// alike to within rounding may change places. Only with generate(), without attention.
  uint32_t lookup = 0;
  TextGenerator* draft = nullptr;
  uint32_t proposals = 0;
  /// Looked at between submissions; once true, generate() returns with what there is.
  const std::atomic<bool>* cancel = nullptr;
  /// Called with the prompt's tokens that are computed, and their number in all.
  std::function<void(size_t done, size_t total)> on_prompt;
  /// Called with each piece of the answer as it is known: whole characters of UTF-8.
  std::function<void(std::string_view piece)> on_text;
};

enum class GenerateEnd {
  kEndOfText,    // the model ended it
  kStopText,     // one of GenerateOptions::stop came
  kTokenLimit,   // max_new_tokens
  kContextFull,  // prompt and answer fill the context
  kCancelled,
};
/// "end of text", "context full", ...
MULCIBER_API const char* name_of(GenerateEnd end);

/// Most weights of a TokenAttention: layers * heads * tokens^2.
constexpr uint64_t kMostAttentionWeights = 1 << 26;

/// Attention weights of every layer and head, with the model's own scores: probabilities after the
/// softmax.
struct TokenAttention {
  uint32_t layers = 0, heads = 0, length = 0;
  /// (layers, heads, length, length) row-major; row i: what token i reads.
  std::vector<float> weights;
  /// Per layer: a token reads so many latest tokens, itself included; 0: all.
  std::vector<uint32_t> windows;
  std::vector<std::string> tokens;  // as a person sees them; U+2581 for a space that begins a word
};

/// The id of an embedding that no token has, in Generation::prompt_ids.
constexpr uint32_t kNoTokenId = UINT32_MAX;

struct Generation {
  std::string text;
  std::vector<uint32_t> ids;  // a token that ended the answer included
  std::vector<uint32_t> prompt_ids;
  GenerateEnd end = GenerateEnd::kCancelled;
  std::optional<TokenAttention> attention;  // the prompt's tokens, then the answer's
  /// Tokens of prompt and answer that GenerateOptions::shift left out of the context.
  uint64_t left_out = 0;
  /// Of BatchGenerator: tokens of the prompt that were computed for another text that began alike.
  uint64_t reused_tokens = 0;
  /// Of BatchGenerator: tokens that speculative decoding proposed, and of these what was taken.
  uint64_t proposed_tokens = 0, accepted_tokens = 0;
};

/// Of the last generate(), except where it says "load".
struct GenerateStatistics {
  double load_seconds = 0;  // load: files to device
  /// Of the prompt that the model read: without what GenerateOptions::shift left out at once.
  uint64_t prompt_tokens = 0;
  uint64_t reused_tokens = 0;  // of these, computed for an earlier prompt that began alike
  uint64_t new_tokens = 0;
  uint32_t decode_steps = 0;     // of speculative decoding: passes
  uint64_t proposed_tokens = 0;  // of these by GenerateOptions::lookup and draft
  uint64_t accepted_tokens = 0;  // that the model chose too
  uint64_t pictures = 0;         // or parts of such, whose embeddings were computed
  double picture_seconds = 0;    // what that took
  double build_seconds = 0;      // making and recording programs
  double prefill_seconds = 0;
  double decode_seconds = 0;       // what GenerateOptions::shift computed again included
  double attention_seconds = 0;    // the pass for GenerateOptions::attention
  double first_token_seconds = 0;  // from the call
  uint64_t weight_bytes = 0;       // load: on the device
  /// load: weights, keys and values, activations, before allocating.
  uint64_t predicted_device_bytes = 0;
  uint64_t peak_device_bytes = 0;  // handed out at most
  uint64_t step_bytes = 0;  // that a step of decoding must read and write, with a full context
};

/// A language model: a Hugging Face folder or a GGUF file, on a device.
class MULCIBER_API TextGenerator {
 public:
  /// Throws ModelError when the files do not hold a language model or disagree, DeviceError when
  /// weights and context do not fit the device's memory (before anything is loaded).
  TextGenerator(std::shared_ptr<Device> device, const std::string& path,
                const GeneratorOptions& options = {});
  TextGenerator(std::shared_ptr<Device> device, std::shared_ptr<const OpenModel> model,
                const GeneratorOptions& options = {});
  ~TextGenerator();
  TextGenerator(TextGenerator&&) noexcept;
  TextGenerator& operator=(TextGenerator&&) noexcept;

  /// Another conversation with the same model: with nothing in its context, of as many tokens as
  /// this one's, or fewer; 0: as many. It shares the weights and takes device memory for its keys,
  /// values and activations alone, which statistics() predicts. The two live as long as they like,
  /// and are used by one thread. Throws DeviceError where it does not fit, SettingError for more
  /// tokens.
  TextGenerator conversation(uint32_t context = 0) const;

  /// What a constructor with the same arguments will take. Throws as that does, but for memory.
  static MemoryPrediction predict(Device& device, const std::string& path,
                                  const GeneratorOptions& options = {});
  static MemoryPrediction predict(Device& device, const OpenModel& model,
                                  const GeneratorOptions& options = {});

  /// Continues a text (UTF-8). What an earlier prompt and answer had in common with this prompt's
  /// beginning is not computed again, so a conversation may be given from its start every time.
  /// Throws ModelError when the prompt has no tokens, or does not leave room for one more in the
  /// context (naming both numbers; nothing is cut).
  Generation generate(const std::string& prompt, const GenerateOptions& options = {});
  /// Continues several texts, GeneratorOptions::sequences at a time, each with a length of its own;
  /// result i is that of prompts[i]. Options hold for all of them; where chance is asked for, text
  /// i draws a stream of its own, whatever its company. on_text and on_prompt are not called. A
  /// text whose stop text came is computed on until its group is done; that is not part of the
  /// result. statistics() then counts all together.
  std::vector<Generation> generate_all(std::span<const std::string> prompts,
                                       const GenerateOptions& options = {});

  /// Log probabilities of texts and of what continues them, in keys and values of their own: what
  /// the conversation holds stays. What a text has in common with the one before is not computed
  /// again. Throws ModelError, naming the text, when it has no tokens or more than context().
  TextScores score(std::span<const ScoreInput> inputs, const ScoreOptions& options = {});
  /// Hidden states of a text's tokens; layers: of HiddenStates. Throws as score(), and where there
  /// is no such layer.
  HiddenStates hidden_states(const std::string& text, std::span<const uint32_t> layers,
                             const ScoreOptions& options = {});

  /// How many tokens a prompt is with these options (add_special, parse_special).
  size_t count_tokens(const std::string& prompt, const GenerateOptions& options = {}) const;
  /// A token as a person sees it, as TokenAttention::tokens has it. Throws ModelError for an id
  /// that is not the model's.
  std::string token_text(uint32_t id) const;

  /// Writes the tokens that are held, with their keys and values, to a file; load_cache() of the
  /// same model and settings takes them back, so that a prompt that begins with them need not be
  /// computed again, also in another process. load_cache() returns the number of tokens. Throws
  /// ModelError when the file cannot be written; when it is not such a file, is damaged, of another
  /// model or other settings, or holds more than the context.
  void save_cache(const std::string& file) const;
  size_t load_cache(const std::string& file);
  /// The same in memory. What was taken before a device was lost goes on on another one.
  std::vector<std::byte> save_cache() const;
  size_t load_cache(std::span<const std::byte> bytes);

  /// The text that continues a conversation with the model's next answer, by the chat template of
  /// its files. It holds all special tokens: generate() it without add_special. No value where the
  /// files bring no template: a base model. Throws ModelError when the template refuses the
  /// messages, such as roles that do not alternate.
  std::optional<std::string> chat_prompt(std::span<const ChatMessage> messages) const;

  /// What generation_config.json asks for (do_sample and its numbers; penalties then look at the
  /// whole text); otherwise the likeliest token, always.
  Sampling default_sampling() const;
  const GenerateStatistics& statistics() const;
  /// Tokens of prompt and answer together, at most.
  uint32_t context() const;
  /// Names of LoadOptions::adapters that requests may want, in their order.
  std::vector<std::string> adapters() const;
  /// Logits of a step.
  uint32_t vocabulary() const;
  /// Numbers of a token's hidden state, and of its embedding.
  uint32_t width() const;
  /// `model_type` of config.json, or the architecture of a GGUF file.
  std::string family() const;
  const std::shared_ptr<Device>& device() const;

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
