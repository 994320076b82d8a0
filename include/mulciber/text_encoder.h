// Texts to vectors, to labels, and to answers in passages, with encoder-only models on any Vulkan
// device. No Vulkan headers are needed. Errors are the types of mulciber/error.h; nothing is
// printed.
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

/// How texts are computed together.
struct BatchOptions {
  /// Texts that are longer than the model takes are cut at their end, of a pair the longer one
  /// first; false: ModelError, naming both numbers.
  bool truncate = true;
  /// Bounds of one batch: texts, and tokens, were all texts as long as the longest.
  uint32_t batch_tokens = 2048;
  uint32_t batch_texts = 64;
  /// Called after every batch with the texts done so far and their number in all.
  std::function<void(size_t done, size_t total)> progress;
  /// Looked at between batches; once true, the call returns with what is complete.
  const std::atomic<bool>* cancel = nullptr;
};

/// Of the last call, except where it says "load".
struct EncoderStatistics {
  size_t texts = 0, batches = 0, truncated = 0;
  uint64_t tokens = 0;         // what the tokenizer adds included
  uint64_t padded_tokens = 0;  // those and the padding that was computed with them
  double load_seconds = 0;     // files to device
  double tokenize_seconds = 0;
  double prepare_seconds = 0;  // building and recording programs
  double run_seconds = 0;      // on the device, with the way there and back
  double total_seconds = 0;
  uint64_t weight_bytes = 0;            // load: on the device
  uint64_t predicted_device_bytes = 0;  // weights and activations, before allocating
  uint64_t peak_device_bytes = 0;       // handed out at most
};

enum class Pooling {
  kMean,            // the mean of the states of all tokens
  kFirst,           // the state of the first token
  kPooler,          // what the model's own pooler makes of that
  kLast,            // the state of the last token
  kMax,             // of each column the largest number
  kMeanSqrtLength,  // the sum of the states over the square root of their number
  kWeightedMean,    // the mean, token i (from 1) counting i times
};

/// Absent values are those of the model's files as sentence-transformers writes them: modules.json,
/// the folders of its Pooling and Dense modules, config_sentence_transformers.json. Without these
/// files: the mean, as it is, and no prompt.
struct EmbedOptions {
  std::optional<Pooling> pooling;
  std::optional<bool> normalize;      // vectors of length 1
  std::optional<std::string> prompt;  // stands before every text
  std::string prompt_name;            // instead: one of prompts()
  BatchOptions batch;
};

struct TextVector {
  std::vector<float> values;
  uint32_t tokens = 0;     // what was read of the text, with what the tokenizer adds
  bool truncated = false;  // the text has more
  bool complete = false;   // false: cancelled before this text was done
};

/// An encoder-only model (a Hugging Face folder) on a device, or a decoder-only one (also a GGUF
/// file), whose states of the last layer are pooled; its texts have at most 8192 tokens.
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

  /// Vectors of texts (UTF-8), in their order. Throws ModelError when options do not fit the model.
  std::vector<TextVector> embed(std::span<const std::string> texts,
                                const EmbedOptions& options = {});
  TextVector embed(const std::string& text, const EmbedOptions& options = {});
  /// Of texts that are given as the ids of their tokens, what a tokenizer adds included: nothing
  /// stands before them, and one that is cut loses its last ids. Throws ModelError for a text
  /// without tokens and for an id that is not the model's, too.
  std::vector<TextVector> embed_ids(std::span<const std::vector<uint32_t>> texts,
                                    const EmbedOptions& options = {});

  /// Cosines of the angles between vectors, computed on the device: (queries, vectors) row-major; 0
  /// where one is all zeros. Throws ModelError where their lengths differ.
  std::vector<float> cosines(std::span<const TextVector> queries,
                             std::span<const TextVector> vectors);

  uint32_t width() const;            // of a vector
  uint32_t embedding_width() const;  // of a token's row in the table of words
  uint32_t max_tokens() const;       // of a text
  /// By their names; what stands before a text of that purpose.
  const std::map<std::string, std::string>& prompts() const;
  const EncoderStatistics& statistics() const;
  const std::shared_ptr<Device>& device() const;

 private:
  friend class EmbeddingTask;  // mulciber/embedding.h
  friend class ModelLoader;    // mulciber/model_loader.h
  friend class PipelineWarmup;
  struct Impl;
  explicit TextEncoder(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;  // tasks keep it too
};

/// A text, or two that are judged together.
struct ClassifierInput {
  std::string text;
  std::optional<std::string> pair;
};

struct Classification {
  /// Of every label, in the order of labels(): they add up to 1, or are each of its own where
  /// several_labels().
  std::vector<float> probabilities;
  std::vector<float> logits;
  uint32_t best = 0;  // the most probable label
  uint32_t tokens = 0;
  bool truncated = false, complete = false;  // as TextVector
};

/// A model for sequence classification on a device.
class MULCIBER_API Classifier {
 public:
  /// As TextEncoder; throws ModelError too where the model has no classifier.
  Classifier(std::shared_ptr<Device> device, const std::string& folder,
             const LoadOptions& options = {});
  Classifier(std::shared_ptr<Device> device, std::shared_ptr<const OpenModel> model,
             const LoadOptions& options = {});
  ~Classifier();
  Classifier(Classifier&&) noexcept;
  Classifier& operator=(Classifier&&) noexcept;

  std::vector<Classification> classify(std::span<const ClassifierInput> inputs,
                                       const BatchOptions& options = {});
  Classification classify(const std::string& text, const BatchOptions& options = {});

  const std::vector<std::string>& labels() const;
  bool several_labels() const;
  uint32_t max_tokens() const;
  const EncoderStatistics& statistics() const;
  const std::shared_ptr<Device>& device() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

struct AnswerOptions {
  uint32_t best = 1;             // answers asked for, at most
  uint32_t longest_tokens = 30;  // of an answer
  /// Tokens that neighbouring windows of a passage share, where it is longer than the model takes;
  /// at most half of a window.
  uint32_t overlap_tokens = 128;
  /// "The passage does not say" is an answer too, for models that were trained to give it.
  bool may_be_none = false;
  BatchOptions batch;
};

struct PassageAnswer {
  std::string text;           // whole words of the passage; empty: the passage does not say
  size_t begin = 0, end = 0;  // its bytes in the passage
  /// Probability that the answer starts where it does, times that it ends there, within its window.
  float score = 0;
};

/// A model for question answering on a device: it marks answers in passages.
class MULCIBER_API PassageReader {
 public:
  /// As TextEncoder; throws ModelError too where the model was not trained for it.
  PassageReader(std::shared_ptr<Device> device, const std::string& folder,
                const LoadOptions& options = {});
  PassageReader(std::shared_ptr<Device> device, std::shared_ptr<const OpenModel> model,
                const LoadOptions& options = {});
  ~PassageReader();
  PassageReader(PassageReader&&) noexcept;
  PassageReader& operator=(PassageReader&&) noexcept;

  /// Best first; empty where the passage has no words, or the call was cancelled. Throws ModelError
  /// when the question leaves no room for the passage.
  std::vector<PassageAnswer> answer(const std::string& question, const std::string& passage,
                                    const AnswerOptions& options = {});

  const EncoderStatistics& statistics() const;
  const std::shared_ptr<Device>& device() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mulciber
