// A decoder-only model of any family on a device.
#pragma once

#include <memory>

#include "models/decoding/sequence_batch.h"
#include "models/device_weights.h"
#include "models/families/decoder_family.h"
#include "models/model.h"
#include "models/model_options.h"
#include "models/networks/decoder_network.h"

namespace mulciber {

class DecoderModel : public Model {
 public:
  /// Throws ModelError when config and tensors disagree, DeviceError when the weights do not fit.
  DecoderModel(Device& device, const Checkpoint& checkpoint, const ModelOptions& options,
               const DecoderFamily& family);

  /// Device memory of the weights, and of a batch on top, before anything is loaded.
  static uint64_t predict_weight_bytes(const Checkpoint& checkpoint, const DecoderConfig& config,
                                       const ModelOptions& options);

  std::string family() const override { return family_; }
  bool half_precision() const override { return half_precision_; }
  uint32_t vocabulary() const override { return config_.vocabulary; }
  const DecoderConfig& config() const { return config_; }
  const DecoderNetwork& network() const { return network_; }
  uint64_t weight_bytes() const { return weights_.bytes(); }
  Device& device() const { return device_; }
  uint64_t memory_limit() const { return memory_limit_; }

  /// Inputs: input_ids (B, S); attention_mask (B, S), where every row is padded on one side;
  /// position_ids, which must count the tokens that are not masked. Outputs: logits, hidden_states,
  /// attentions.
  NamedArrays forward(const NamedArrays& inputs, std::span<const std::string> wanted) override;
  /// Greedy. Inputs: input_ids (1, S). "output_ids" (1, n): the new ids alone. n_best must be 1.
  NamedArrays generate(const NamedArrays& inputs, const GenerationConfig& config,
                       uint32_t n_best) override;
  /// What tokens read of one another, of every layer and head: (layers, heads, length, length)
  /// probabilities after the softmax, before head factors; row i is of ids[i]. ids: 1 to
  /// network().context of them.
  std::vector<float> attention(std::span<const uint32_t> ids);

 private:
  Device& device_;
  std::string family_;
  uint64_t memory_limit_;
  DecoderConfig config_;
  bool half_precision_;
  Weights weights_;
  DecoderNetwork network_;
};

}  // namespace mulciber
