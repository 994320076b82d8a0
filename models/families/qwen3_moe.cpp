// Qwen 3 with a mixture of experts, none of them shared.
#include <nlohmann/json.hpp>

#include "models/families/experts_config.h"
#include "models/families/qwen2.h"

namespace mulciber {
namespace {

constexpr GgufKey kQwen3MoeExpertKeys[] = {{"expert_feed_forward_length", "moe_intermediate_size"}};

/// llama.cpp always normalizes the gates of the chosen experts.
void complete_qwen3_moe(const GgufMetadata&, Json& config) { config["norm_topk_prob"] = true; }

DecoderConfig read_qwen3_moe(const ConfigReader& config) {
  DecoderConfig decoder = kQwen3.read(config);
  decoder.files.names = kQwenExpertNames;
  read_qwen_experts(config, decoder);
  return decoder;
}

}  // namespace

constinit const DecoderFamily kQwen3Moe = {.model_type = "qwen3_moe",
                                           .read = read_qwen3_moe,
                                           .gguf = GgufFamily{.architecture = "qwen3moe",
                                                              .more_keys = kQwen3MoeExpertKeys,
                                                              .activation = "silu",
                                                              .complete = complete_qwen3_moe},
                                           .end_pieces = kQwenEndPieces};

}  // namespace mulciber
