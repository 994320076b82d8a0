// A decoder-only model of any family on a device.
#pragma once

#include <memory>

#include "models/core/device_weights.h"
#include "models/generation/decoder_architecture.h"
#include "models/generation/decoder_vectors.h"
#include "models/generation/language_model.h"
#include "models/generation/sequence_slots.h"

namespace mulciber {

class DecoderModel : public Model, public LanguageModel {
 public:
  /// config: the checkpoint's. Throws ModelError when it and the tensors disagree, DeviceError when
  /// weights or contexts do not fit.
  DecoderModel(Device& device, const Checkpoint& checkpoint, const DecoderConfig& config,
               const ModelOptions& options);
  /// Loads the weights of `beside` too, which belong to another network. plan: memory of both.
  DecoderModel(Device& device, const Checkpoint& checkpoint, DecoderConfig config,
               const ModelOptions& options, const WeightTable& beside, MemoryPrediction plan);

  std::string family() const override { return family_; }
  bool half_precision() const override { return half_precision_; }
  Extents extents() const override;
  uint64_t weight_bytes() const override { return weights_.bytes(); }
  LanguageModel* continues_text() override { return this; }
  EncodingModel* encodes_text() override { return &vectors_; }
  const DecoderNetwork& network() const override { return network_; }
  const MemoryPrediction& memory_plan() const override { return memory_plan_; }

  /// Inputs: input_ids (B, S); attention_mask (B, S), where every row is padded on one side;
  /// position_ids, which must count the tokens that are not masked. Outputs: logits, hidden_states,
  /// attentions.
  NamedArrays forward(const NamedArrays& inputs, std::span<const std::string> wanted) override;
  std::vector<float> attention(std::span<const uint32_t> ids,
                               std::span<const float> adapters) override;
  std::unique_ptr<TextAttention> start_attention(std::span<const uint32_t> ids, uint32_t room,
                                                 std::span<const float> adapters) override;
  AttentionPasses plan_attention(uint32_t room) const override;
  NamedArrays search(const NamedArrays& inputs, const GenerationConfig& config,
                     uint32_t n_best) override;

 protected:
  Device& device() const { return device_; }
  const DecoderConfig& config() const { return config_; }
  Weights& weights() { return weights_; }
  /// Runs forward() with embeddings in place of some tokens of the only row. given: these
  /// embeddings.
  NamedArrays forward_given(const NamedArrays& inputs, std::span<const std::string> wanted,
                            std::span<const GivenRows> given);

 private:
  Device& device_;
  std::string family_;
  uint64_t memory_limit_;
  DecoderConfig config_;
  bool half_precision_;
  MemoryPrediction memory_plan_;
  std::shared_ptr<const AdapterStack> adapters_;
  Weights weights_;
  DecoderNetwork network_;
  DecoderVectors vectors_;
};

}  // namespace mulciber
