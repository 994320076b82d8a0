// The implementation of TextEncoder, which its tasks share.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "models/encoding/encoder_runner.h"
#include "models/encoding/sentence_config.h"
#include "mulciber/text_encoder.h"

namespace mulciber {

struct TextEncoder::Impl : EncoderRunner {
  SentenceConfig sentence;

  /// Loads the model. weights: ModelOptions::weights.
  void open(std::shared_ptr<Device> on, const OpenModel& opened, const LoadOptions& options,
            std::shared_ptr<WeightsLoad> weights = {});
  uint32_t width() const;  // floats in an embedding
  uint32_t most_tokens() const;
  /// The prefix of every text.
  std::string prompt(const EmbedOptions& options) const;
  EncoderOutput output(const EmbedOptions& options) const;
  /// Texts behind their prompt as ids, truncated where they are too long.
  std::vector<EncoderInput> prompted(std::span<const std::string> texts,
                                     std::vector<bool>& truncated, const EmbedOptions& options);
  std::vector<TextVector> vectors(std::span<const EncoderInput> inputs,
                                  const std::vector<bool>& truncated, const EmbedOptions& options);
  bool normalizes(const EmbedOptions& options) const {
    return options.normalize.value_or(sentence.normalize);
  }
};

}  // namespace mulciber
