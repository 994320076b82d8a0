#include <nlohmann/json.hpp>

#include "models/families/experts_config.h"
#include "models/families/qwen2.h"

namespace mulciber {
namespace {

constexpr GgufKey kOfExperts[] = {{"expert_feed_forward_length", "moe_intermediate_size"}};

/// llama.cpp always normalizes the gates of the chosen experts.
void complete(const GgufMetadata&, Json& config) { config["norm_topk_prob"] = true; }

DecoderConfig read(const ConfigReader& config) {
  DecoderConfig decoder = kQwen3.read(config);
  decoder.files.names = kQwenExpertNames;
  read_qwen_experts(config, decoder);
  return decoder;
}

}  // namespace

constinit const DecoderFamily kQwen3Moe = {.model_type = "qwen3_moe",
                                           .read = read,
                                           .gguf = GgufFamily{.architecture = "qwen3moe",
                                                              .more_keys = kOfExperts,
                                                              .activation = "silu",
                                                              .complete = complete},
                                           .end_pieces = kQwenEndPieces};

}  // namespace mulciber
