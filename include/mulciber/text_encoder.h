// Text embeddings, text classification and extractive question answering, with encoder-only models
// on any Vulkan device. No Vulkan headers are needed. Errors are the types of mulciber/error.h;
// nothing is printed.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "mulciber/device.h"
#include "mulciber/load_options.h"
#include "mulciber/open_model.h"

namespace mulciber {

/// Batches of texts.
struct TextBatchOptions {
  /// Truncate texts with more tokens than the model takes at their end, the longer text of a pair
  /// first; false: throw ModelError naming both numbers.
  bool truncate = true;
  /// Limits of one batch: tokens, padding to the longest text included, and texts.
  uint32_t batch_tokens = 2048;
  uint32_t batch_texts = 64;
  /// Called after every batch with the numbers of finished and of all texts.
  std::function<void(size_t done, size_t total)> progress;
  /// Read between batches; once true, the call returns with the texts that are complete.
  const std::atomic<bool>* cancel = nullptr;
};
using BatchOptions [[deprecated("use TextBatchOptions")]] = TextBatchOptions;

/// Counts and times of the last call, and of loading where marked "load".
struct EncoderStatistics {
  size_t texts = 0, batches = 0, truncated = 0;
  uint64_t tokens = 0;         // special tokens included
  uint64_t padded_tokens = 0;  // tokens and padding that were computed
  double load_seconds = 0;     // load: files to device
  double tokenize_seconds = 0;
  double prepare_seconds = 0;  // building and recording programs
  double run_seconds = 0;      // on the device, transfers included
  double total_seconds = 0;
  uint64_t weight_bytes = 0;            // load: on the device
  uint64_t predicted_device_bytes = 0;  // weights and activations, before allocating
  uint64_t peak_device_bytes = 0;       // most bytes allocated at once
};

enum class Pooling {
  kMean,            // the mean of the hidden states of all tokens
  kFirst,           // the hidden state of the first token
  kPooler,          // the model's own pooler, applied to the first token's state
  kLast,            // the hidden state of the last token
  kMax,             // the maximum of each column
  kMeanSqrtLength,  // the sum of the hidden states over the square root of their number
  kWeightedMean,    // the mean, in which token i (from 1) has the weight i
};

/// Options that are not set come from the model's sentence-transformers files: modules.json, the
/// folders of its Pooling and Dense modules, config_sentence_transformers.json. Without these files
/// the defaults are mean pooling, no normalization and no prompt.
struct EmbedOptions {
  std::optional<Pooling> pooling;
  std::optional<bool> normalize;      // vectors of length 1
  std::optional<std::string> prompt;  // prefix of every text
  std::string prompt_name;            // name of one of prompts(), instead of prompt
  TextBatchOptions batch;
  /// Give the first values of each vector alone, scaled to length 1 again where vectors are
  /// normalized; 0: all of them. For models that were trained so. Calls that give no vector refuse
  /// it.
  /// Source: Kusupati et al. 2022, arXiv:2205.13147 (Matryoshka).
  uint32_t dimensions = 0;
};

struct TextVector {
  std::vector<float> values;
  uint32_t tokens = 0;     // tokens that were read, special tokens included
  bool truncated = false;  // the text has more tokens
  bool complete = false;   // false: cancelled before this text was done
};

/// Hidden states of a text's tokens after the last layer.
struct TextStates {
  std::vector<float> values;  // (tokens, TextEncoder::state_width()) row-major
  uint32_t tokens = 0;        // see TextVector
  bool truncated = false, complete = false;
};

/// A text embedding model on a device: an encoder-only model (a Hugging Face folder), or a
/// decoder-only one (a folder or a GGUF file), whose hidden states after the last layer are pooled.
/// Texts for a decoder-only model have at most 8192 tokens.
class MULCIBER_API TextEncoder {
 public:
  /// Throws ModelError when the folder does not hold such a model or its files disagree,
  /// DeviceError when the model does not fit the device's memory.
  TextEncoder(std::shared_ptr<Device> device, const std::string& folder,
              const LoadOptions& options = {});
  TextEncoder(std::shared_ptr<Device> device, std::shared_ptr<const OpenModel> model,
              const LoadOptions& options = {});
  ~TextEncoder();
  TextEncoder(TextEncoder&&) noexcept;
  TextEncoder& operator=(TextEncoder&&) noexcept;

  /// Embeddings of texts (UTF-8), in their order. Throws ModelError when options do not fit the
  /// model.
  std::vector<TextVector> embed(std::span<const std::string> texts,
                                const EmbedOptions& options = {});
  TextVector embed(const std::string& text, const EmbedOptions& options = {});
  /// Embeddings of texts given as token ids, special tokens included. Prompts are not used, and
  /// truncation removes the last ids. Throws ModelError also for a text without tokens and for an
  /// id outside the vocabulary.
  std::vector<TextVector> embed_ids(std::span<const std::vector<uint32_t>> texts,
                                    const EmbedOptions& options = {});

  /// Hidden states of texts, which embeddings are pooled from. Throws as embed(), and SettingError
  /// for pooling, normalize and dimensions.
  std::vector<TextStates> states(std::span<const std::string> texts,
                                 const EmbedOptions& options = {});
  /// Ids that embed() reads for a text: prompt and special tokens included, and not truncated.
  std::vector<uint32_t> token_ids(const std::string& text, const EmbedOptions& options = {}) const;

  /// Cosine similarities, computed on the device: (queries, vectors) row-major; 0 for a vector of
  /// zeros. Throws ModelError when the vectors' lengths differ.
  std::vector<float> cosines(std::span<const TextVector> queries,
                             std::span<const TextVector> vectors);

  uint32_t width() const;            // floats in an embedding
  uint32_t embedding_width() const;  // columns of the token embedding table
  uint32_t state_width() const;      // floats in a token's hidden state
  uint32_t max_tokens() const;       // most tokens of a text
  /// Settings of the model's files, which options replace.
  Pooling pooling() const;
  bool normalizes() const;
  /// Prompts by name: prefixes for texts of a purpose.
  const std::map<std::string, std::string>& prompts() const;
  const std::string& default_prompt() const;  // its name; "": texts have no prefix
  const EncoderStatistics& statistics() const;
  const std::shared_ptr<Device>& device() const;
  /// Frees device memory that is kept for later texts, and returns bytes, see Translator::trim().
  uint64_t trim();

 private:
  friend class EmbeddingTask;  // mulciber/embedding.h
  friend class ModelLoader;    // mulciber/model_loader.h
  friend class PipelineWarmup;
  struct Impl;
  explicit TextEncoder(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;  // tasks keep it too
};

/// A text, or a pair of texts that is classified as one.
struct ClassifierInput {
  std::string text;
  std::optional<std::string> pair;
};

struct Classification {
  /// Probabilities in the order of labels(): their sum is 1, or they are independent if
  /// several_labels().
  std::vector<float> probabilities;
  std::vector<float> logits;
  uint32_t best = 0;  // the most probable label
  uint32_t tokens = 0;
  bool truncated = false, complete = false;  // see TextVector
};

/// A model for sequence classification on a device.
class MULCIBER_API Classifier {
 public:
  /// Throws as TextEncoder, and ModelError when the model has no classifier.
  Classifier(std::shared_ptr<Device> device, const std::string& folder,
             const LoadOptions& options = {});
  Classifier(std::shared_ptr<Device> device, std::shared_ptr<const OpenModel> model,
             const LoadOptions& options = {});
  ~Classifier();
  Classifier(Classifier&&) noexcept;
  Classifier& operator=(Classifier&&) noexcept;

  std::vector<Classification> classify(std::span<const ClassifierInput> inputs,
                                       const TextBatchOptions& options = {});
  Classification classify(const std::string& text, const TextBatchOptions& options = {});

  const std::vector<std::string>& labels() const;
  bool several_labels() const;
  uint32_t max_tokens() const;
  const EncoderStatistics& statistics() const;
  const std::shared_ptr<Device>& device() const;
  uint64_t trim();  // see TextEncoder::trim()

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

struct AnswerOptions {
  uint32_t best = 1;             // most answers returned
  uint32_t longest_tokens = 30;  // most tokens of an answer
  /// Tokens that neighbouring windows share, where the passage is longer than the model takes; at
  /// most half of a window.
  uint32_t overlap_tokens = 128;
  /// Also allow the answer that the passage does not contain one, for models trained with such
  /// questions.
  bool may_be_none = false;
  TextBatchOptions batch;
};

struct PassageAnswer {
  std::string text;           // whole words of the passage; empty: the passage has no answer
  size_t begin = 0, end = 0;  // byte range in the passage
  /// Probability of the answer's start times the probability of its end, within its window.
  float score = 0;
};

/// A model for extractive question answering on a device: answers are spans of a passage.
class MULCIBER_API PassageReader {
 public:
  /// Throws as TextEncoder, and ModelError when the model has no question answering head.
  PassageReader(std::shared_ptr<Device> device, const std::string& folder,
                const LoadOptions& options = {});
  PassageReader(std::shared_ptr<Device> device, std::shared_ptr<const OpenModel> model,
                const LoadOptions& options = {});
  ~PassageReader();
  PassageReader(PassageReader&&) noexcept;
  PassageReader& operator=(PassageReader&&) noexcept;

  /// Returns answers, best first; none when the passage has no words or the call was cancelled.
  /// Throws ModelError when the question leaves no room for the passage.
  std::vector<PassageAnswer> answer(const std::string& question, const std::string& passage,
                                    const AnswerOptions& options = {});

  const EncoderStatistics& statistics() const;
  const std::shared_ptr<Device>& device() const;
  uint64_t trim();  // see TextEncoder::trim()

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mulciber
