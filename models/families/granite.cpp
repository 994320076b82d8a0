// Granite 3: Llama with multipliers of embeddings, scores, residual branches and logits.
#include "models/families/families.h"

namespace mulciber {
namespace {

constexpr GgufKey kGraniteMultipliers[] = {{"attention.scale", "attention_multiplier"},
                                           {"embedding_scale", "embedding_multiplier"},
                                           {"residual_scale", "residual_multiplier"},
                                           {"logit_scale", "logits_scaling"}};

DecoderConfig read_granite(const ConfigReader& config) {
  const auto multiplier = [&](const char* key, double otherwise) {
    return static_cast<float>(config.number_or(key, otherwise, 1e-9, 1e9));
  };
  require_absent(config, "num_local_experts");
  DecoderConfig decoder = read_llama_like(config);
  decoder.embedding.multiplier = multiplier("embedding_multiplier", 1);
  decoder.attention.scale = multiplier("attention_multiplier", 1);
  decoder.residual_multiplier = multiplier("residual_multiplier", 1);
  decoder.output.multiplier = 1 / multiplier("logits_scaling", 1);
  read_one_rope(config, decoder);
  return decoder;
}

constexpr const char* kGraniteEndPieces[] = {"<|end_of_text|>"};

}  // namespace

constinit const DecoderFamily kGranite = {.model_type = "granite",
                                          .read = read_granite,
                                          .gguf = GgufFamily{.architecture = "granite",
                                                             .more_keys = kGraniteMultipliers,
                                                             .activation = "silu",
                                                             .pairs = RotaryPairs::kNeighbours},
                                          .end_pieces = kGraniteEndPieces};

}  // namespace mulciber
