// What stands behind a TextEncoder and its tasks.
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

  /// weights: ModelOptions::weights.
  void open(std::shared_ptr<Device> on, const OpenModel& opened, const LoadOptions& options,
            std::shared_ptr<WeightsLoad> weights = {});
  uint32_t most_tokens() const;
  /// What stands before a text.
  std::string prompt(const EmbedOptions& options) const;
  EncoderOutput output(const EmbedOptions& options) const;
  std::vector<TextVector> vectors(std::span<const EncoderInput> inputs,
                                  const std::vector<bool>& truncated, const EmbedOptions& options);
  bool normalizes(const EmbedOptions& options) const {
    return options.normalize.value_or(sentence.normalize);
  }
};

}  // namespace mulciber
