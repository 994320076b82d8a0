// Whisper's configuration. Source: Radford et al. 2022, arXiv:2212.04356.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "models/core/config.h"

namespace mulciber {

/// Whisper's sizes and settings, from the keys of Hugging Face's WhisperConfig and
/// generation_config.json.
struct WhisperConfig {
  uint32_t width = 0;  // D
  uint32_t mels = 0;   // mel bands of a frame
  uint32_t encoder_layers = 0, encoder_heads = 0, encoder_ffn = 0;
  uint32_t decoder_layers = 0, decoder_heads = 0, decoder_ffn = 0;
  uint32_t vocabulary = 0;
  uint32_t positions = 0;  // encoder positions; a window has twice as many frames
  uint32_t context = 0;    // most tokens of the decoder
  Activation activation = Activation::kGelu;
  bool scale_embedding = false;
  /// Texts begin with a language token and a task token.
  bool multilingual = true;
  GenerationConfig generation;
  std::vector<uint32_t> suppressed;        // ids that are never chosen
  std::vector<uint32_t> suppressed_first;  // ids that are never chosen first
  /// Cross-attention heads that align text and sound: layer and head. Empty: all heads of the upper
  /// half of the layers.
  std::vector<std::pair<uint32_t, uint32_t>> alignment_heads;

  uint32_t frames() const { return 2 * positions; }
};

/// Read the configuration. Throw ModelError naming file and key.
WhisperConfig read_whisper_config(const ConfigReader& config, const ConfigReader* generation);
WhisperConfig read_whisper_config(const Checkpoint& checkpoint);

}  // namespace mulciber
