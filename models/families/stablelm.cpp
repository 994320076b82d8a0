// StableLM: layer norms with biases, and RoPE on a quarter of each head.
#include <nlohmann/json.hpp>

#include "models/families/families.h"

namespace mulciber {
namespace {

DecoderConfig read_stablelm(const ConfigReader& config) {
  DecoderConfig decoder = read_llama_like(config);
  use_layer_norms(config, "layer_norm_eps", true, decoder);
  if (config.boolean_or("use_parallel_residual", false))
    decoder.residual = Residual::kParallelSharedNorm;
  decoder.attention.qkv_bias = config.boolean_or("use_qkv_bias", false);
  decoder.attention.out_bias = false;
  // Stable LM 2 12B has a separate norm tensor for each head, which is not supported.
  require_absent(config, "qk_layernorm");
  read_one_rope(config, decoder, 0.25);
  return decoder;
}

constexpr GgufKey kStableLmGgufKeys[] = {epsilon_key("layer_norm_eps")};

void complete_stablelm(const GgufMetadata& metadata, Json& config) {
  config["use_qkv_bias"] = config["attention_bias"];
  config["qk_layernorm"] = metadata.checkpoint().find("blk.0.attn_q_norm.weight") != nullptr;
}

constexpr const char* kStableLmEndPieces[] = {"<|endoftext|>", "<|im_end|>"};

}  // namespace

constinit const DecoderFamily kStableLm = {.model_type = "stablelm",
                                           .read = read_stablelm,
                                           .gguf = GgufFamily{.architecture = "stablelm",
                                                              .more_keys = kStableLmGgufKeys,
                                                              .activation = "silu",
                                                              .complete = complete_stablelm},
                                           .end_pieces = kStableLmEndPieces};

}  // namespace mulciber
