// Qwen 3: Qwen 2 with QK-norm, and without biases of queries, keys and values.
#include "models/families/qwen2.h"

namespace mulciber {
namespace {

DecoderConfig read_qwen3(const ConfigReader& config) {
  DecoderConfig decoder = read_qwen2(config);
  decoder.attention.qkv_bias = decoder.attention.out_bias =
      config.boolean_or("attention_bias", false);
  decoder.attention.qk_norm = QueryKeyNorm::kPerHead;
  return decoder;
}

}  // namespace

constinit const DecoderFamily kQwen3 = {
    .model_type = "qwen3",
    .read = read_qwen3,
    .gguf = GgufFamily{.architecture = "qwen3", .activation = "silu"},
    .end_pieces = kQwenEndPieces};

}  // namespace mulciber
