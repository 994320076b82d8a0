#include "models/families/qwen2.h"

namespace mulciber {

DecoderConfig read_qwen2(const ConfigReader& config) {
  DecoderConfig decoder = read_llama_like(config);
  decoder.attention.qkv_bias = true;
  decoder.attention.out_bias = false;
  read_one_rope(config, decoder);
  // Without layer_types the first max_window_layers have full attention.
  read_windows(config, decoder, [](uint32_t layer, const ConfigReader& c) {
    return c.boolean_or("use_sliding_window", false) &&
           layer >= c.integer_or("max_window_layers", 28, 0, kMostLayers);
  });
  return decoder;
}

constinit const DecoderFamily kQwen2 = {
    .model_type = "qwen2",
    .read = read_qwen2,
    .gguf = GgufFamily{.architecture = "qwen2", .activation = "silu"},
    .end_pieces = kQwenEndPieces};

}  // namespace mulciber
