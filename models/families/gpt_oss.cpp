// gpt-oss: experts with biases and clamped gates, attention sinks, alternating windows.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "models/families/families.h"

namespace mulciber {
namespace {

constexpr DecoderNames gpt_oss_names() {
  DecoderNames names = kLlamaNames;
  names.sinks = "self_attn.sinks";
  names.router = "mlp.router";
  names.expert_gate_up = "mlp.experts.gate_up_proj";
  names.expert_down = "mlp.experts.down_proj";
  return names;
}

constexpr GgufKey kGptOssExpertKeys[] = {{"expert_feed_forward_length", "intermediate_size"}};

constexpr DecoderNames gpt_oss_gguf_names() {
  DecoderNames names = kGgufNames;
  names.feed_forward_norm = "post_attention_norm";
  names.after_attention_norm = nullptr;
  names.sinks = "attn_sinks";
  return names;
}

DecoderConfig read_gpt_oss(const ConfigReader& given) {
  Json json = given.json();
  // This key says how experts are stored; their tensors show it too.
  if (given.has("quantization_config") &&
      given.object("quantization_config").text_or("quant_method", "") == "mxfp4")
    json.erase("quantization_config");
  const ConfigReader config(json, given.where(), given.remedy());
  DecoderConfig decoder = read_llama_like(config);
  decoder.files.names = gpt_oss_names();
  decoder.files.experts = SourceForm::kTransposed;
  decoder.norms.epsilon = static_cast<float>(config.number_or("rms_norm_eps", 1e-5, 0, 1));
  decoder.attention.qkv_bias = decoder.attention.out_bias =
      config.boolean_or("attention_bias", true);
  decoder.attention.sinks = true;
  read_one_rope(config, decoder);
  read_windows(config, decoder, [](uint32_t layer, const ConfigReader&) { return layer % 2 == 0; });
  DecoderExperts experts;
  experts.count = static_cast<uint32_t>(config.integer("num_local_experts", 1, kMostExperts));
  experts.per_token = static_cast<uint32_t>(config.integer_or(
      "num_experts_per_tok", 4, 1, std::min<int64_t>(experts.count, kMostExpertsPerToken)));
  experts.router_bias = true;
  experts.limit = static_cast<float>(config.number_or("swiglu_limit", 7, 1e-3, 1e9));
  decoder.feed_forward.experts = experts;
  decoder.feed_forward.bias = true;
  // Gates use SiLU(1.702 x) / 1.702, which hidden_act does not say.
  decoder.feed_forward.activation = Activation::kQuickGelu;
  return decoder;
}

/// Files omit that YaRN's range of blended frequencies is not rounded to whole indices.
void complete_gpt_oss(const GgufMetadata&, Json& config) {
  if (config.contains("rope_scaling")) config["rope_scaling"]["truncate"] = false;
}

constexpr const char* kGptOssEndPieces[] = {"<|return|>", "<|call|>", "<|endoftext|>"};

}  // namespace

constinit const DecoderFamily kGptOss = {.model_type = "gpt_oss",
                                         .read = read_gpt_oss,
                                         .gguf = GgufFamily{.architecture = "gpt-oss",
                                                            .more_keys = kGptOssExpertKeys,
                                                            .activation = "silu",
                                                            .names = gpt_oss_gguf_names(),
                                                            .complete = complete_gpt_oss},
                                         .end_pieces = kGptOssEndPieces};

}  // namespace mulciber
