// Texts to vectors by a decoder-only model: the states that its output product takes, pooled.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/core/encoding_model.h"
#include "models/families/decoder_config.h"
#include "models/families/encoder_config.h"
#include "models/generation/token_scorer.h"

namespace mulciber {

/// One text after the other, with keys and values of its own. Must not outlive device and network.
class DecoderVectors : public EncodingModel {
 public:
  DecoderVectors(Device& device, const DecoderNetwork& network, const DecoderConfig& config,
                 std::string family);

  const EncoderConfig& config() const override { return config_; }
  bool has_pooler() const override { return false; }
  /// Throws ModelError: no decoder-only model is known that has any.
  void add_dense(const DenseModule& module) override;
  uint32_t batch_limit(uint32_t) override { return 1; }
  EncoderResult encode(const EncoderRequest& request) override;
  /// Throws ModelError: not in slices.
  std::unique_ptr<EncodingPass> start(const EncodingStart& start) override;
  std::vector<PipelineKey> pipelines(uint32_t, EncoderOutput, bool) const override { return {}; }

 private:
  TokenScorer& scorer_for(size_t tokens);

  Device& device_;
  const DecoderNetwork& network_;
  std::string family_;
  EncoderConfig config_;  // what is known of any model that encodes
  std::optional<TokenScorer> scorer_;
};

/// The vector of a text. states: (tokens, width), one token or more. Sums in double precision.
std::vector<float> pooled(std::span<const float> states, uint32_t width, EncoderOutput output,
                          bool normalized);

}  // namespace mulciber
