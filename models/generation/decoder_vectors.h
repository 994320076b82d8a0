// Text embeddings by a decoder-only model: its last hidden states (after the last norm), pooled.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/core/encoding_model.h"
#include "models/families/decoder_config.h"
#include "models/families/encoder_config.h"
#include "models/generation/token_scorer.h"

namespace mulciber {

/// Encodes one text after the other, with a KV cache of its own. Must not outlive device and
/// network.
class DecoderVectors : public EncodingModel {
 public:
  DecoderVectors(Device& device, const DecoderNetwork& network, const DecoderConfig& config,
                 std::string family);

  const EncoderConfig& config() const override { return config_; }
  bool has_pooler() const override { return false; }
  /// Throws ModelError: no decoder-only model with dense modules is known.
  void add_dense(const DenseModule& module) override;
  uint32_t batch_limit(uint32_t) override { return 1; }
  EncoderResult encode(const EncoderRequest& request) override;
  /// Throws ModelError: decoder-only models do not encode in slices.
  std::unique_ptr<EncodingPass> start(const EncodingStart& start) override;
  std::vector<PipelineKey> pipelines(uint32_t, EncoderOutput, bool) const override { return {}; }
  void trim() override { scorer_.reset(); }

 private:
  TokenScorer& scorer_for(size_t tokens);

  Device& device_;
  const DecoderNetwork& network_;
  std::string family_;
  EncoderConfig config_;  // width, vocabulary, context and columns alone
  std::optional<TokenScorer> scorer_;
};

/// Pools the states of a text to one vector. states: (tokens, width), one token or more. Sums are
/// in double precision.
std::vector<float> pooled(std::span<const float> states, uint32_t width, EncoderOutput output,
                          bool normalized);

}  // namespace mulciber
