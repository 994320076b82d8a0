// Cohere's Command models: parallel sublayers with one norm; Cohere 2 has layers without RoPE.
#include <nlohmann/json.hpp>

#include "models/families/families.h"

namespace mulciber {
namespace {

/// Reads the keys that both generations share: one norm without a bias precedes both sublayers.
DecoderConfig read_cohere_shared(const ConfigReader& config) {
  DecoderConfig decoder = read_llama_like(config);
  use_layer_norms(config, "layer_norm_eps", false, decoder);
  decoder.residual = Residual::kParallelSharedNorm;
  read_one_rope(config, decoder);
  decoder.ropes[0].pairs = RotaryPairs::kNeighbours;
  decoder.output.tied = config.boolean_or("tie_word_embeddings", true);
  decoder.output.multiplier =
      static_cast<float>(config.number_or("logit_scale", 0.0625, 1e-9, 1e9));
  return decoder;
}

DecoderConfig read_cohere(const ConfigReader& config) {
  DecoderConfig decoder = read_cohere_shared(config);
  if (config.boolean_or("use_qk_norm", false)) decoder.attention.qk_norm = QueryKeyNorm::kOwnGains;
  return decoder;
}

/// Layers with full attention have no rotary embedding.
DecoderConfig read_cohere2(const ConfigReader& config) {
  DecoderConfig decoder = read_cohere_shared(config);
  read_windows(config, decoder, [](uint32_t layer, const ConfigReader& c) {
    const char* key =
        c.has("sliding_window_pattern") ? "sliding_window_pattern" : "_sliding_window_pattern";
    return (layer + 1) % c.integer_or(key, 4, 1, kMostLayers) != 0;
  });
  for (DecoderLayerConfig& layer : decoder.layers)
    if (layer.window == 0) layer.rope = std::nullopt;
  return decoder;
}

constexpr GgufKey kCohereGgufKeys[] = {epsilon_key("layer_norm_eps"),
                                       {"logit_scale", "logit_scale"}};

void complete_cohere(const GgufMetadata& metadata, Json& config) {
  config["use_qk_norm"] = metadata.checkpoint().find("blk.0.attn_q_norm.weight") != nullptr;
}

constexpr const char* kCohereEndPieces[] = {"<|END_OF_TURN_TOKEN|>"};

}  // namespace

constinit const DecoderFamily kCohere = {.model_type = "cohere",
                                         .read = read_cohere,
                                         .gguf = GgufFamily{.architecture = "command-r",
                                                            .more_keys = kCohereGgufKeys,
                                                            .activation = "silu",
                                                            .pairs = RotaryPairs::kNeighbours,
                                                            .complete = complete_cohere},
                                         .end_pieces = kCohereEndPieces};

constinit const DecoderFamily kCohere2 = {.model_type = "cohere2",
                                          .read = read_cohere2,
                                          .gguf = GgufFamily{.architecture = "cohere2",
                                                             .more_keys = kCohereGgufKeys,
                                                             .activation = "silu",
                                                             .pairs = RotaryPairs::kNeighbours},
                                          .end_pieces = kCohereEndPieces};

}  // namespace mulciber
