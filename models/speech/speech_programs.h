// Programs of a speech network: encoding of a window, and a full pass.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "models/networks/speech_network.h"
#include "ops/control.h"
#include "runtime/program.h"

namespace mulciber {

/// Encodes features to the keys and values of every decoder layer's cross-attention.
struct SpeechEncoding {
  Buffer windows, control;
  std::vector<Buffer> kept;
  std::vector<Tensor> memories;  // by layer: (1, positions, columns)
  std::optional<Program> program;

  SpeechEncoding(Device& device, const SpeechNetwork& network, const WhisperConfig& config);
  /// features: (frames, mels).
  void write(Device& device, std::span<const float> features, uint32_t mels) const;
};

/// A full pass: encoder and decoder in one program.
struct SpeechPass {
  uint32_t length;  // tokens
  bool attentions;
  ControlArray<uint32_t> lengths, tokens;
  ControlWords words;
  Buffer control;
  Trace trace;
  Tensor logits;  // (1, length, vocabulary)
  std::optional<Program> program;

  SpeechPass(Device& device, const SpeechNetwork& network, const WhisperConfig& config,
             const Buffer& windows, uint32_t token_count, bool with_attentions);
};

}  // namespace mulciber
