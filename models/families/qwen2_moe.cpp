// Qwen 1.5 and 2 with experts: a shared expert with a sigmoid gate beside the routed ones.
#include "models/families/experts_config.h"
#include "models/families/qwen2.h"

namespace mulciber {
namespace {

constexpr DecoderNames with_shared(DecoderNames names) {
  names.shared_gate = "mlp.shared_expert.gate_proj";
  names.shared_up = "mlp.shared_expert.up_proj";
  names.shared_down = "mlp.shared_expert.down_proj";
  names.shared_router = "mlp.shared_expert_gate";
  return names;
}

constexpr GgufKey kQwen2MoeExpertKeys[] = {
    {"expert_feed_forward_length", "moe_intermediate_size"},
    {"expert_shared_feed_forward_length", "shared_expert_intermediate_size"}};

DecoderConfig read_qwen2_moe(const ConfigReader& config) {
  DecoderConfig decoder = read_qwen2(config);
  decoder.attention.qkv_bias = config.boolean_or("qkv_bias", true);
  decoder.files.names = with_shared(kQwenExpertNames);
  read_qwen_experts(config, decoder);
  DecoderExperts& experts = *decoder.feed_forward.experts;
  experts.shared_hidden =
      static_cast<uint32_t>(config.integer("shared_expert_intermediate_size", 1, kWidest));
  experts.shared_gate = true;
  return decoder;
}

}  // namespace

constinit const DecoderFamily kQwen2Moe = {.model_type = "qwen2_moe",
                                           .read = read_qwen2_moe,
                                           .gguf = GgufFamily{.architecture = "qwen2moe",
                                                              .more_keys = kQwen2MoeExpertKeys,
                                                              .activation = "silu"},
                                           .end_pieces = kQwenEndPieces};

}  // namespace mulciber
