// Whisper's network: an encoder over frames of sound, a decoder of text.
#pragma once

#include "layers/transformer.h"
#include "models/core/device_weights.h"
#include "models/families/whisper_config.h"
#include "models/networks/text_decoder.h"

namespace mulciber {

/// Names, shapes and source names of every weight that a configuration asks for.
WeightTable whisper_weight_table(const WhisperConfig& config);

/// Source: Radford et al. 2022, arXiv:2212.04356, section 2.2.
class SpeechNetwork {
 public:
  SpeechNetwork(const WhisperConfig& config, const Weights& weights, DataType activations);

  DataType activations() const { return activations_; }

  /// windows: (frames, 3 mels) f32, as unfold_by_ones() makes them of features. control: a u32
  /// tensor. Result: (1, positions, D), normalized.
  Tensor encode(ProgramBuilder& builder, const Tensor& windows, const StackControl& control,
                Trace* trace = nullptr) const;
  /// The decoder of texts over what encode() gave.
  const TextDecoder& decoder() const { return decoder_; }

 private:
  DataType activations_;
  Linear first_, second_;  // convolutions: (D, 3 mels), (D, 3 D)
  Tensor positions_;       // (positions, D)
  Encoder encoder_;
  TextDecoder decoder_;
};

}  // namespace mulciber
