// The interface of models that transcribe: sound in, a text out, token by token.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/core/model.h"
#include "models/families/whisper_config.h"
#include "models/translation/memory_texts.h"

namespace mulciber {

/// Encodes one window of sound at a time, and decodes texts of it.
class SpeechModel : public MemoryReader {
 public:
  virtual const WhisperConfig& config() const = 0;
  uint32_t vocabulary() const override { return config().vocabulary; }
  uint32_t context() const override { return config().context; }
  /// Encodes a window. features: (config().frames(), config().mels). Texts that begin() starts from
  /// then on are about this window. Throws ModelError for more or fewer features.
  virtual void encode(std::span<const float> features) = 0;
  /// Cross-attention probabilities of a text of the last window, (layers, heads, tokens,
  /// config().positions), by a pass of their own. logits: see MemoryTexts::cross_attention().
  virtual std::vector<float> cross_attention(std::span<const uint32_t> tokens,
                                             std::vector<float>* logits) = 0;
  /// Frees programs, caches and activations that are kept for later sounds.
  virtual void trim() = 0;
  /// Decodes inputs input_features (1, mels, frames) and decoder_input_ids (1, n). Output:
  /// "output_ids" (n_best, length), the ids behind these, by arg max or the beams that `config`
  /// asks for.
  virtual NamedArrays search(const NamedArrays& inputs, const GenerationConfig& config,
                             uint32_t n_best) = 0;
};

}  // namespace mulciber
