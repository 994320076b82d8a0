// What transcribing needs of a model: sound in, a text out, token by token.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/core/model.h"
#include "models/families/whisper_config.h"
#include "models/translation/memory_texts.h"

namespace mulciber {

/// One window of sound at a time, and texts of it.
class SpeechModel : public MemoryReader {
 public:
  virtual const WhisperConfig& config() const = 0;
  uint32_t vocabulary() const override { return config().vocabulary; }
  uint32_t context() const override { return config().context; }
  /// Encodes a window. features: (config().frames(), config().mels). What begin() starts from then
  /// on is about this window. Throws ModelError where there are more or fewer.
  virtual void encode(std::span<const float> features) = 0;
  /// Cross-attention probabilities of a text of the last window, (layers, heads, tokens,
  /// config().positions), a pass of its own.
  virtual std::vector<float> cross_attention(std::span<const uint32_t> tokens) = 0;
  /// Inputs: input_features (1, mels, frames), decoder_input_ids (1, n). "output_ids" (n_best,
  /// length): what follows them, by arg max or the beams that `config` asks for.
  virtual NamedArrays search(const NamedArrays& inputs, const GenerationConfig& config,
                             uint32_t n_best) = 0;
};

}  // namespace mulciber
