// Whisper on a device.
#pragma once

#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/core/architecture.h"
#include "models/networks/speech_network.h"
#include "models/speech/speech_model.h"

namespace mulciber {

struct SpeechEncoding;
struct SpeechPass;

/// Programs are built when first needed, and kept: one that encodes, those for texts, and the most
/// recently used full passes. Not thread-safe.
class WhisperModel : public Model, public SpeechModel {
 public:
  /// Throws ModelError when configuration and tensors disagree, DeviceError when the weights do not
  /// fit.
  WhisperModel(Device& device, const Checkpoint& checkpoint, const WhisperConfig& config,
               const ModelOptions& options);
  ~WhisperModel() override;

  std::string family() const override { return "whisper"; }
  bool half_precision() const override { return half_precision_; }
  Extents extents() const override;
  uint64_t weight_bytes() const override { return weights_.bytes(); }
  /// Inputs: input_features (1, mels, frames), decoder_input_ids (1, n).
  NamedArrays forward(const NamedArrays& inputs, std::span<const std::string> wanted) override;
  SpeechModel* hears() override { return this; }

  const WhisperConfig& config() const override { return config_; }
  void encode(std::span<const float> features) override;
  void begin(uint32_t rows) override { texts().begin(rows); }
  std::span<const float> prompt(std::span<const uint32_t> ids, size_t also_behind) override {
    return texts().prompt(ids, also_behind);
  }
  std::span<const float> step(std::span<const uint32_t> tokens,
                              std::span<const uint32_t> parents) override {
    return texts().step(tokens, parents);
  }
  std::vector<float> cross_attention(std::span<const uint32_t> tokens,
                                     std::vector<float>* logits) override {
    return texts().cross_attention(tokens, logits);
  }
  void trim() override;
  NamedArrays search(const NamedArrays& inputs, const GenerationConfig& config,
                     uint32_t n_best) override;

 private:
  SpeechEncoding& encoding();
  MemoryTexts& texts();
  SpeechPass& pass(uint32_t length, bool attentions);
  std::vector<float> features_of(const NamedArrays& inputs) const;

  Device& device_;
  WhisperConfig config_;
  bool half_precision_;
  uint64_t memory_limit_;
  Weights weights_;
  SpeechNetwork network_;
  std::unique_ptr<SpeechEncoding> encoding_;
  std::optional<MemoryTexts> texts_;
  std::list<std::unique_ptr<SpeechPass>> passes_;  // most recently used first
};

/// An Architecture, by which the model is planned and loaded. Throws ModelError.
std::unique_ptr<const Architecture> read_whisper(const Checkpoint& checkpoint);

}  // namespace mulciber
