// Phi 1, 1.5 and 2: parallel sublayers with one layer norm, partial RoPE, and an output bias.
#include "models/families/families.h"

namespace mulciber {
namespace {

constexpr DecoderNames phi_names() {
  DecoderNames names = kLlamaNames;
  names.final_norm = "model.final_layernorm";
  names.attention_out = "self_attn.dense";
  names.gate = nullptr;
  names.up = "mlp.fc1";
  names.down = "mlp.fc2";
  return names;
}

DecoderConfig read_phi(const ConfigReader& config) {
  DecoderConfig decoder = read_llama_like(config);
  decoder.files.names = phi_names();
  use_layer_norms(config, "layer_norm_eps", true, decoder);
  decoder.residual = Residual::kParallelSharedNorm;
  decoder.attention.qkv_bias = decoder.attention.out_bias = true;
  require_absent(config, "qk_layernorm");
  read_one_rope(config, decoder, 0.5);
  decoder.feed_forward.kind = FeedForwardKind::kPlain;
  decoder.feed_forward.bias = true;
  decoder.output.bias = true;
  return decoder;
}

constexpr GgufKey kPhiGgufKeys[] = {epsilon_key("layer_norm_eps")};

constexpr const char* kPhiEndPieces[] = {"<|endoftext|>"};

}  // namespace

constinit const DecoderFamily kPhi = {.model_type = "phi",
                                      .read = read_phi,
                                      .gguf = GgufFamily{.architecture = "phi2",
                                                         .more_keys = kPhiGgufKeys,
                                                         .activation = "gelu_new",
                                                         .names = kPlainGgufNames},
                                      .end_pieces = kPhiEndPieces};

}  // namespace mulciber
