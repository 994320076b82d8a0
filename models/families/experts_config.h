// Mixtures of experts as the configurations of several families have them.
#pragma once

#include "models/families/decoder_config.h"

namespace mulciber {

/// Qwen's keys: `moe_intermediate_size`, `num_experts`, `num_experts_per_tok`, `norm_topk_prob`,
/// and which layers have no experts: `decoder_sparse_step`, `mlp_only_layers`.
/// Throws ModelError naming file and key.
void read_qwen_experts(const ConfigReader& config, DecoderConfig& decoder);

/// Hugging Face's names since Qwen 1.5 with experts.
constexpr DecoderNames kQwenExpertNames = [] {
  DecoderNames names = kLlamaNames;
  names.router = "mlp.gate";
  names.expert_gate = "mlp.experts.{}.gate_proj";
  names.expert_up = "mlp.experts.{}.up_proj";
  names.expert_down = "mlp.experts.{}.down_proj";
  return names;
}();

}  // namespace mulciber
