#include "models/families/families.h"

namespace mulciber {

DecoderConfig read_qwen2(const ConfigReader& config) {
  DecoderConfig decoder = read_llama_like(config);
  decoder.qkv_bias = true;
  decoder.ropes = {
      read_rope_of(config, nullptr, {decoder.head_size, 10000, decoder.max_positions})};
  // Without layer_types the first max_window_layers see everything.
  read_windows(config, decoder, [](uint32_t layer, const ConfigReader& c) {
    return c.boolean_or("use_sliding_window", false) &&
           layer >= c.integer_or("max_window_layers", 28, 0, kMostLayers);
  });
  return decoder;
}

}  // namespace mulciber
