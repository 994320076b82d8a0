// Translation with encoder-decoder models on any Vulkan device. No Vulkan headers are needed.
// Errors are the types of mulciber/error.h; nothing is printed.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "mulciber/device.h"
#include "mulciber/load_options.h"
#include "mulciber/open_model.h"

namespace mulciber {

/// Factors for the output of attention heads: (layers, heads) row-major; empty: all 1.
struct HeadMasks {
  std::vector<float> encoder, decoder, cross;
  bool operator==(const HeadMasks&) const = default;
};

/// Options that are not set come from generation_config.json and config.json.
struct TranslateOptions {
  std::optional<uint32_t> beams;           // 1: greedy search; at most 32
  std::optional<float> length_penalty;     // exponent of the length that divides a score
  std::optional<bool> early_stopping;      // stop at the first `beams` finished hypotheses
  std::optional<uint32_t> max_new_tokens;  // end of sentence included
  uint32_t n_best = 1;                     // hypotheses per text, at most `beams`
  std::vector<uint32_t> banned_tokens;     // ids never chosen, in addition to the model's own
  /// Sequences of ids that are never chosen, in addition to the model's own (bad_words_ids). The
  /// start token counts as part of the text.
  std::vector<std::vector<uint32_t>> banned_sequences;
  /// Languages of multilingual models, in the names of their vocabularies: "de" (M2M-100, and
  /// Marian's ">>de<<"), "deu_Latn" (NLLB). Empty: from the model's files.
  std::string source_language, target_language;
  bool attention = false;  // also return attention maps of the best hypothesis
  HeadMasks head_masks;

  /// Limits of a batch: source tokens (padding included) and sentences. More sentences join as soon
  /// as others are done.
  uint32_t batch_tokens = 1500;
  uint32_t batch_sentences = 64;
  /// Called when texts are done, with the numbers of finished and of all texts.
  std::function<void(size_t done, size_t total)> progress;
  /// Read between steps; once true, translate() returns with the texts that are complete.
  const std::atomic<bool>* cancel = nullptr;
};

/// Attention weights after the softmax, row-major.
struct AttentionMaps {
  uint32_t encoder_layers = 0, encoder_heads = 0, decoder_layers = 0, decoder_heads = 0;
  uint32_t cross_layers = 0, cross_heads = 0;
  uint32_t source_length = 0;  // source tokens, end of sentence included
  uint32_t target_length =
      0;  // tokens of the best hypothesis; row t is the step that chose token t
  // Maps are empty if the model has no attention of that kind: recurrent models have
  // cross-attention only.
  std::vector<float> encoder;  // (encoder layers, heads, source, source)
  /// (decoder layers, heads, target, target); column 0 is the start token.
  std::vector<float> decoder;
  std::vector<float> cross;  // (cross layers, heads, target, source)
};

struct Alternative {
  std::string text;
  /// Sum of log probabilities over the number of tokens to the power of the length penalty.
  float score = 0;
  /// Ids, the end-of-sentence token included if it was reached; models may have several such
  /// tokens.
  std::vector<uint32_t> ids;
  std::vector<std::string> tokens;  // ids as pieces of the vocabulary
};

struct Translation {
  std::string text;  // text of the best hypothesis
  float score = 0;
  std::vector<uint32_t> ids;
  std::vector<std::string> tokens;
  std::vector<uint32_t> source_ids;  // end of sentence included
  std::vector<std::string> source_tokens;
  std::vector<Alternative> alternatives;  // the n_best hypotheses, best first
  std::optional<AttentionMaps> attention;
  /// False when translate() was cancelled before this text was done; the other fields are then
  /// empty.
  bool complete = false;
};

/// Log probability of a given translation.
struct TranslationScore {
  double log_probability = 0;  // sum over the tokens, each given the source and the previous tokens
  uint32_t tokens = 0;         // end of sentence included
  std::vector<uint32_t> ids;   // of the tokens
  std::vector<double> token_log_probabilities;  // of each token
};

/// Counts and times of the last translate(), and of loading where marked "load". batches: searches,
/// one after another; refills: times that texts joined a running search. row_steps: rows of all
/// steps, where a step has a row for each beam of each text that it covers; needed_row_steps: the
/// rows whose text was not done.
struct TranslateStatistics {
  size_t texts = 0, batches = 0;
  uint64_t source_tokens = 0, target_tokens = 0, decoder_steps = 0;
  uint64_t row_steps = 0, needed_row_steps = 0, refills = 0;
  double load_seconds = 0;      // load: files to device
  double tokenize_seconds = 0;  // encoding and decoding text
  double prepare_seconds = 0;   // building and recording programs
  double encode_seconds = 0, decode_seconds = 0, attention_seconds = 0;
  double first_token_seconds = 0;  // from the call until the CPU knows the first token
  double total_seconds = 0;
  uint64_t weight_bytes = 0;            // load: on the device
  uint64_t predicted_device_bytes = 0;  // weights, caches and activations, before allocating
  uint64_t peak_device_bytes = 0;       // most bytes allocated at once
};

/// Layers and heads of a model: the extents of attention maps and head masks.
struct ModelExtents {
  uint32_t encoder_layers = 0, encoder_heads = 0, decoder_layers = 0, decoder_heads = 0;
  uint32_t cross_layers = 0, cross_heads = 0;
};

/// The two vocabularies of a translation model. In most models they are one.
enum class TranslationSide { kSource, kTarget };

/// A translation model, or another sequence-to-sequence model, on a device: a Hugging Face folder
/// (`model_type` marian, bart, m2m_100, t5, mt5, bahdanau, luong).
class MULCIBER_API Translator {
 public:
  /// Throws ModelError when the folder does not hold a translation model or its files disagree,
  /// DeviceError when the model does not fit the device's memory.
  Translator(std::shared_ptr<Device> device, const std::string& folder,
             const LoadOptions& options = {});
  Translator(std::shared_ptr<Device> device, std::shared_ptr<const OpenModel> model,
             const LoadOptions& options = {});
  ~Translator();
  Translator(Translator&&) noexcept;
  Translator& operator=(Translator&&) noexcept;

  /// Translates texts (UTF-8, one sentence or line each) and keeps their order. A text without
  /// tokens, such as "" or blanks, translates to "" without use of the device.
  /// Throws ModelError when a text has more tokens than the model has positions (naming both
  /// numbers; nothing is truncated), or when options do not fit the model, such as an unknown
  /// language.
  std::vector<Translation> translate(std::span<const std::string> texts,
                                     const TranslateOptions& options = {});
  Translation translate(const std::string& text, const TranslateOptions& options = {});
  /// Translates texts given as ids of the source vocabulary, which the model reads as they are: end
  /// of sentence and language tokens included (see token_ids()). A list without ids translates to
  /// "". Throws ModelError also for an id outside of the vocabulary, and for options whose language
  /// token would have to be among the ids.
  std::vector<Translation> translate_ids(std::span<const std::vector<uint32_t>> sources,
                                         const TranslateOptions& options = {});

  /// Scores given translations: targets[i] of sources[i]. A pair without source tokens scores 0.
  /// Throws ModelError when the numbers of texts differ, or a text has more tokens than the model
  /// has positions.
  std::vector<TranslationScore> score(std::span<const std::string> sources,
                                      std::span<const std::string> targets,
                                      const HeadMasks& head_masks = {});
  /// Scores translations given as ids, as translate_ids() takes sources; targets end with the end
  /// of sentence.
  std::vector<TranslationScore> score_ids(std::span<const std::vector<uint32_t>> sources,
                                          std::span<const std::vector<uint32_t>> targets,
                                          const HeadMasks& head_masks = {});

  /// Ids that translate() reads for a source, or score() for a target, with what the tokenizer
  /// adds. options: languages, for sources. Empty for a source without tokens. Texts may be longer
  /// than the model takes.
  std::vector<uint32_t> token_ids(const std::string& text,
                                  TranslationSide side = TranslationSide::kSource,
                                  const TranslateOptions& options = {}) const;
  /// Ids of tokens that are pieces of the vocabulary; that of the unknown token for other tokens.
  /// Throws ModelError where there is no unknown token.
  std::vector<uint32_t> ids_of(std::span<const std::string> tokens,
                               TranslationSide side = TranslationSide::kSource) const;
  /// Pieces of ids; "" for an id that the vocabulary does not have.
  std::vector<std::string> tokens_of(std::span<const uint32_t> ids,
                                     TranslationSide side = TranslationSide::kSource) const;
  /// Text of ids without special tokens. Ids that the vocabulary does not have give no text.
  std::string text_of(std::span<const uint32_t> ids,
                      TranslationSide side = TranslationSide::kTarget) const;
  /// Languages that the vocabulary has tokens for, as TranslateOptions::target_language names them,
  /// in the order of the vocabulary; empty for models of one pair.
  std::vector<std::string> languages() const;

  const TranslateStatistics& statistics() const;
  /// Most source tokens, end of sentence included.
  uint32_t max_source_tokens() const;
  ModelExtents extents() const;
  /// The piece that decoding starts from.
  std::string start_token() const;
  const std::shared_ptr<Device>& device() const;
  /// Frees device memory that is kept for later texts: programs, caches and activations for lengths
  /// seen before. Weights and the memory of running tasks stay. The next texts take longer, because
  /// they build it again. Returns the bytes that went back to the driver or the application's
  /// allocator, which may be fewer than were freed, because other allocations share their blocks.
  uint64_t trim();

 private:
  friend class AttentionTask;  // mulciber/embedding.h
  friend class BatchTranslator;
  friend class TranslationTask;
  friend class ModelLoader;  // mulciber/model_loader.h
  friend class PipelineWarmup;
  struct Impl;
  explicit Translator(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;  // tasks keep it too
};

}  // namespace mulciber
