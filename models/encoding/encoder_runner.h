// Common part of TextEncoder, Classifier and PassageReader: tokenizing texts and running batches.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "models/core/encoding_model.h"
#include "models/families/encoder_config.h"
#include "models/families/open_model.h"
#include "mulciber/text_encoder.h"

namespace mulciber {

/// A text or a pair of texts as ids, and the ranges of the texts' own tokens between added ones.
struct TokenizedInput {
  EncoderInput ids;
  size_t first_begin = 0, first_end = 0;
  size_t second_begin = 0, second_end = 0;  // equal: there is no second text
  bool truncated = false;
};

struct EncoderRunner {
  std::shared_ptr<Device> device;
  std::shared_ptr<Model> model;
  EncodingModel* encoder = nullptr;  // the model's interface
  std::shared_ptr<const Tokenizer> tokenizer;
  EncoderStatistics statistics;

  /// Loads a model. task: the task that the checkpoint must be trained for; kNone: any. Throws
  /// ModelError, before anything is loaded, for another task. weights: ModelOptions::weights.
  void load(const OpenModel& opened, const LoadOptions& options, Capability capability,
            EncoderTask task, std::shared_ptr<WeightsLoad> weights = {});
  const EncoderConfig& config() const { return encoder->config(); }

  /// Tokenizes a text, or a pair, and finds the texts' own tokens in the result. pair: the second
  /// text; nullptr: none. Throws ModelError when the tokenizer has no rule for pairs.
  TokenizedInput tokenize(const std::string& text, const std::string* pair) const;
  /// Truncates the longer text at its end until `most` tokens remain. Throws ModelError about
  /// `where` when `truncate` is false, or when nothing of the texts would remain.
  void fit(TokenizedInput& input, uint32_t most, bool truncate, const std::string& where) const;

  /// Frees device memory that is kept for later texts, see Translator::trim().
  uint64_t trim();
  /// Resets the statistics for a call.
  void begin(size_t texts);
  /// Runs all inputs in batches of similar lengths; `take` gets the values of each. Returns early
  /// when the call is cancelled.
  void run(std::span<const EncoderInput> inputs, EncoderOutput output, bool normalized,
           const TextBatchOptions& options,
           const std::function<void(size_t index, std::vector<float> values)>& take);
};

}  // namespace mulciber
