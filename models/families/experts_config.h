// Mixtures of experts in the configurations of several families.
#pragma once

#include "models/families/decoder_config.h"

namespace mulciber {

/// Reads Qwen's keys: `moe_intermediate_size`, `num_experts`, `num_experts_per_tok`,
/// `norm_topk_prob`, and the layers without experts: `decoder_sparse_step`, `mlp_only_layers`.
/// Throws ModelError naming file and key.
void read_qwen_experts(const ConfigReader& config, DecoderConfig& decoder);

/// Names in Hugging Face's files of Qwen models with experts, since Qwen 1.5.
constexpr DecoderNames kQwenExpertNames = [] {
  DecoderNames names = kLlamaNames;
  names.router = "mlp.gate";
  names.expert_gate = "mlp.experts.{}.gate_proj";
  names.expert_up = "mlp.experts.{}.up_proj";
  names.expert_down = "mlp.experts.{}.down_proj";
  return names;
}();

}  // namespace mulciber
