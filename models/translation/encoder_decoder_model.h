// A sequence-to-sequence model on a device, with any kind of network.
#pragma once

#include <memory>

#include "models/core/device_weights.h"
#include "models/translation/encoder_decoder.h"
#include "models/translation/translation_model.h"

namespace mulciber {

/// The result of loading a family's checkpoint.
struct EncoderDecoderParts {
  std::string family;           // `model_type` of its config.json
  GenerationConfig generation;  // eos, pad and decoder_start are set
  Extents extents;
  bool half_precision = false;
  Weights weights;  // the weights of `network`
  std::unique_ptr<EncoderDecoderNetwork> network;
};

/// Takes inputs and gives outputs by the names of Hugging Face transformers; searches, and gives
/// attention maps.
class EncoderDecoderModel : public Model, public TranslationModel {
 public:
  /// memory_limit: bytes, 0 for what is available.
  EncoderDecoderModel(Device& device, EncoderDecoderParts parts, uint64_t memory_limit);

  std::string family() const override { return family_; }
  bool half_precision() const override { return half_precision_; }
  Extents extents() const override { return extents_; }
  uint64_t weight_bytes() const override { return weights_.bytes(); }
  TranslationModel* translates() override { return this; }
  const GenerationConfig& generation_config() const override { return generation_; }
  uint32_t max_source_tokens() const override { return network().context; }
  uint32_t source_vocabulary() const override { return network().source_vocabulary; }
  uint32_t max_target_tokens() const override { return network().context; }
  uint32_t batch_limit(uint32_t source_length, const GenerationSettings& settings) override;

  /// Inputs: input_ids (B, S), attention_mask (B, S; ones, then zeros), decoder_input_ids (B, T).
  NamedArrays forward(const NamedArrays& inputs, std::span<const std::string> wanted) override;
  NamedArrays search(const NamedArrays& inputs, const GenerationConfig& config,
                     uint32_t n_best) override;
  GenerationResult generate(const GenerationRequest& request) override;
  bool refills() const override { return network().keeps_items_apart(); }
  std::unique_ptr<SearchSlots> open_search(uint32_t slots, uint32_t source_length,
                                           const GenerationSettings& settings,
                                           const HeadMasks& head_masks) override {
    return programs_.open_search(slots, source_length, settings, head_masks);
  }
  void check_request(std::span<const uint32_t> source,
                     const GenerationSettings& settings) const override;
  [[noreturn]] void refuse(const std::vector<uint32_t>& source, uint32_t start,
                           const HeadMasks& head_masks) override {
    programs_.refuse("of a translation", source, {start}, head_masks);
  }
  std::unique_ptr<SearchTask> start(const GenerationRequest& request) override;
  void check(const SearchTask& task, const GenerationRequest& request) override;
  std::vector<std::vector<double>> score(std::span<const std::vector<uint32_t>> sources,
                                         std::span<const std::vector<uint32_t>> targets,
                                         uint32_t start, const HeadMasks& head_masks) override;
  SequenceAttention attention(const std::vector<uint32_t>& source,
                              const std::vector<uint32_t>& target,
                              const HeadMasks& head_masks) override;
  std::unique_ptr<TranslationAttention> start_attention(const std::vector<uint32_t>& source,
                                                        const std::vector<uint32_t>& target,
                                                        const HeadMasks& head_masks,
                                                        uint32_t source_room,
                                                        uint32_t target_room) override;
  std::vector<PipelineKey> pipelines(uint32_t source_tokens,
                                     const GenerationSettings& settings) const override {
    return programs_.pipelines(source_tokens, settings);
  }
  AttentionPasses plan_attention(uint32_t source_room, uint32_t target_room) const override {
    return programs_.plan_attention(source_room, target_room);
  }
  void begin_attention(TranslationAttention& pass, const std::vector<uint32_t>& source,
                       const std::vector<uint32_t>& target, const HeadMasks& head_masks) override;
  bool padding_has_states() const override { return network().padding_has_states; }
  void trim() override { programs_.trim(); }

 private:
  const EncoderDecoderNetwork& network() const { return programs_.network(); }
  uint32_t pad() const { return static_cast<uint32_t>(generation_.pad.value_or(0)); }
  void check_source(std::span<const uint32_t> ids) const;
  void check_target(std::span<const uint32_t> ids) const;
  ForwardRequest attention_request(const std::vector<uint32_t>& source,
                                   const std::vector<uint32_t>& target,
                                   const HeadMasks& head_masks) const;

  std::string family_;
  GenerationConfig generation_;
  Extents extents_;
  bool half_precision_;
  Weights weights_;
  EncoderDecoder programs_;
};

}  // namespace mulciber
