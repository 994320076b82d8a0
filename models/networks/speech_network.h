// Whisper's network: an audio encoder and a text decoder.
#pragma once

#include "layers/transformer.h"
#include "models/core/network_weights.h"
#include "models/families/whisper_config.h"
#include "models/networks/text_decoder.h"

namespace mulciber {

/// Whisper's encoder and decoder. Source: Radford et al. 2022, arXiv:2212.04356, section 2.2.
class SpeechNetwork {
 public:
  SpeechNetwork(const WhisperConfig& config, NetworkWeights& weights, DataType activations);

  DataType activations() const { return activations_; }

  /// Adds the encoder. windows: (frames, 3 mels) f32, features unfolded by unfold_by_ones().
  /// control: a u32 tensor. Returns (1, positions, D), normalized.
  Tensor encode(ProgramBuilder& builder, const Tensor& windows, const StackControl& control,
                Trace* trace = nullptr) const;
  /// The text decoder, which attends to the result of encode().
  const TextDecoder& decoder() const { return decoder_; }

 private:
  DataType activations_;
  Linear first_, second_;  // convolutions: (D, 3 mels), (D, 3 D)
  Tensor positions_;       // (positions, D)
  Encoder encoder_;
  TextDecoder decoder_;
};

}  // namespace mulciber
