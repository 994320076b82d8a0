#include <algorithm>
#include <nlohmann/json.hpp>

#include "models/families/qwen2.h"

namespace mulciber {
namespace {

constexpr DecoderNames names() {
  DecoderNames names = kLlamaNames;
  names.router = "mlp.gate";
  names.expert_gate = "mlp.experts.{}.gate_proj";
  names.expert_up = "mlp.experts.{}.up_proj";
  names.expert_down = "mlp.experts.{}.down_proj";
  return names;
}

constexpr GgufKey kOfExperts[] = {{"expert_feed_forward_length", "moe_intermediate_size"}};

/// llama.cpp normalizes the gates of the chosen whatever the model was.
void complete(const GgufMetadata&, Json& config) { config["norm_topk_prob"] = true; }

DecoderConfig read(const ConfigReader& config) {
  DecoderConfig decoder = kQwen3.read(config);
  decoder.files.names = names();
  // All layers have experts in the models that were published.
  if (config.integer_or("decoder_sparse_step", 1, 1, kMostLayers) != 1)
    config.fail("decoder_sparse_step", "is not 1: layers without experts are not supported");
  if (config.has("mlp_only_layers") && !config.list("mlp_only_layers").empty())
    config.fail("mlp_only_layers", "lists layers: layers without experts are not supported");
  decoder.feed_forward.hidden =
      static_cast<uint32_t>(config.integer("moe_intermediate_size", 1, kWidest));
  DecoderExperts experts;
  const char* count = config.has("num_experts") ? "num_experts" : "num_local_experts";
  experts.count = static_cast<uint32_t>(config.integer(count, 1, kMostExperts));
  experts.per_token = static_cast<uint32_t>(config.integer(
      "num_experts_per_tok", 1, std::min<int64_t>(experts.count, kMostExpertsPerToken)));
  experts.normalized = config.boolean_or("norm_topk_prob", false);
  decoder.feed_forward.experts = experts;
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
