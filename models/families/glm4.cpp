// GLM-4-0414: norms before and after each sublayer, and RoPE on half of each head.
#include "models/families/families.h"

namespace mulciber {
namespace {

constexpr DecoderNames glm4_names() {
  DecoderNames names = kLlamaNames;
  names.after_attention_norm = "post_self_attn_layernorm";
  names.gate_up = "mlp.gate_up_proj";
  names.after_feed_forward_norm = "post_mlp_layernorm";
  return names;
}

DecoderConfig read_glm4(const ConfigReader& config) {
  DecoderConfig decoder = read_llama_like(config);
  decoder.files.names = glm4_names();
  decoder.norms.place = NormPlace::kBoth;
  decoder.attention.out_bias = false;
  read_one_rope(config, decoder, 0.5);
  decoder.ropes[0].pairs = RotaryPairs::kNeighbours;
  return decoder;
}

constexpr DecoderNames glm4_gguf_names() {
  DecoderNames names = kGgufNames;
  names.gate_up = "ffn_up";
  return names;
}

constexpr const char* kGlm4EndPieces[] = {"<|user|>", "<|observation|>", "<|endoftext|>"};

}  // namespace

constinit const DecoderFamily kGlm4 = {.model_type = "glm4",
                                       .read = read_glm4,
                                       .gguf = GgufFamily{.architecture = "glm4",
                                                          .activation = "silu",
                                                          .names = glm4_gguf_names(),
                                                          .pairs = RotaryPairs::kNeighbours},
                                       .end_pieces = kGlm4EndPieces};

}  // namespace mulciber
