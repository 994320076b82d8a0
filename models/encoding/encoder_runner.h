// What stands behind TextEncoder, Classifier and PassageReader: texts to inputs, inputs to batches.
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

/// A text as ids, or a pair of them, and where the texts' own tokens stand among those that the
/// tokenizer adds.
struct TokenizedInput {
  EncoderInput ids;
  size_t first_begin = 0, first_end = 0;
  size_t second_begin = 0, second_end = 0;  // alike: there is no second text
  bool truncated = false;
};

struct EncoderRunner {
  std::shared_ptr<Device> device;
  std::unique_ptr<Model> model;
  EncodingModel* encoder = nullptr;  // what it can do
  std::shared_ptr<const Tokenizer> tokenizer;
  EncoderStatistics statistics;

  /// task: what the checkpoint must have been trained to do; kNone: anything. Throws ModelError
  /// before anything is loaded where it was not. weights: ModelOptions::weights.
  void load(const OpenModel& opened, const LoadOptions& options, Capability capability,
            EncoderTask task, std::shared_ptr<WeightsLoad> weights = {});
  const EncoderConfig& config() const { return encoder->config(); }

  /// Of nothing but its own tokens: where ids of a whole input hold those of its texts. pair: none,
  /// or the second text. Throws ModelError where the tokenizer has no rule for pairs.
  TokenizedInput tokenize(const std::string& text, const std::string* pair) const;
  /// Takes tokens from the end of the longer text until no more than `most` are left. where: for
  /// the message of the ModelError where `truncate` is false, or nothing of the texts would be
  /// left.
  void fit(TokenizedInput& input, uint32_t most, bool truncate, const std::string& where) const;

  /// Begins the statistics of a call.
  void begin(size_t texts);
  /// Runs all inputs in batches of like lengths; `take` gets the values of each. Returns early
  /// where the call is cancelled.
  void run(std::span<const EncoderInput> inputs, EncoderOutput output, bool normalized,
           const BatchOptions& options,
           const std::function<void(size_t index, std::vector<float> values)>& take);
};

}  // namespace mulciber
