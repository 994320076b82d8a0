// Whisper's configuration. Source: Radford et al. 2022, arXiv:2212.04356.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "models/core/config.h"

namespace mulciber {

/// Keys as in Hugging Face's WhisperConfig and its generation_config.json.
struct WhisperConfig {
  uint32_t width = 0;  // D
  uint32_t mels = 0;   // of a frame of features
  uint32_t encoder_layers = 0, encoder_heads = 0, encoder_ffn = 0;
  uint32_t decoder_layers = 0, decoder_heads = 0, decoder_ffn = 0;
  uint32_t vocabulary = 0;
  uint32_t positions = 0;  // of the encoder; a window has twice as many frames
  uint32_t context = 0;    // tokens the decoder can be fed
  Activation activation = Activation::kGelu;
  bool scale_embedding = false;
  /// Its texts begin with a language and a task.
  bool multilingual = true;
  GenerationConfig generation;
  std::vector<uint32_t> suppressed;        // ids that are never chosen
  std::vector<uint32_t> suppressed_first;  // nor those as the first of a text
  /// Heads of the cross-attention that follow the sound: layer and head. Empty: all of the upper
  /// half of the layers.
  std::vector<std::pair<uint32_t, uint32_t>> alignment_heads;

  uint32_t frames() const { return 2 * positions; }
};

/// Throws ModelError naming file and key.
WhisperConfig read_whisper_config(const ConfigReader& config, const ConfigReader* generation);
WhisperConfig read_whisper_config(const Checkpoint& checkpoint);

}  // namespace mulciber
