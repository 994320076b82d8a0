// Marian translation models.
#pragma once

#include <memory>

#include "models/encoder_decoder.h"
#include "models/model_options.h"

namespace mulciber {

/// Names, shapes and source names of every weight that a configuration asks for.
/// Optional weights (final_logits_bias) are in the table when the checkpoint has them.
WeightTable marian_weight_table(const MarianConfig& config, const Checkpoint& checkpoint);

/// An encoder-decoder Transformer with Marian's names, embeddings and output.
/// Source: Junczys-Dowmunt et al. 2018, arXiv:1804.00344; names as in Hugging Face's MarianMTModel.
class Marian : public SequenceToSequenceModel {
 public:
  /// Throws ModelError when config and tensors disagree, DeviceError when the weights do not fit.
  Marian(Device& device, const Checkpoint& checkpoint, const ModelOptions& options);

  std::string family() const override { return "marian"; }
  bool half_precision() const override { return half_precision_; }
  uint32_t vocabulary() const override { return config_.target_vocab; }
  const GenerationConfig& generation_config() const override { return config_.generation; }
  uint32_t max_source_tokens() const override { return config_.max_positions; }
  uint32_t max_target_positions() const override { return config_.max_positions; }
  Extents extents() const override;
  uint32_t batch_limit(uint32_t source_length, const GenerationSettings& settings) override;
  uint64_t weight_bytes() const override { return weights_.bytes(); }

  /// Inputs: input_ids (B, S), attention_mask (B, S; ones, then zeros), decoder_input_ids (B, T).
  NamedArrays forward(const NamedArrays& inputs, std::span<const std::string> wanted) override;
  /// Inputs: input_ids (1, S), attention_mask (1, S).
  NamedArrays generate(const NamedArrays& inputs, const GenerationConfig& config,
                       uint32_t n_best) override;
  GenerationResult generate(const GenerationRequest& request) override;
  std::vector<double> score(std::span<const std::vector<uint32_t>> sources,
                            std::span<const std::vector<uint32_t>> targets, uint32_t start,
                            const HeadFactors& head_factors) override;
  SequenceAttention attention(const std::vector<uint32_t>& source,
                              const std::vector<uint32_t>& target,
                              const HeadFactors& head_factors) override;

 private:
  uint32_t pad() const { return static_cast<uint32_t>(config_.generation.pad.value_or(0)); }
  void check_source(std::span<const uint32_t> ids) const;
  void check_target(std::span<const uint32_t> ids) const;

  MarianConfig config_;
  bool half_precision_;
  Weights weights_;
  EncoderDecoder network_;
};

}  // namespace mulciber
