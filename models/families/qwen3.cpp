#include "models/families/families.h"

namespace mulciber {

DecoderConfig read_qwen3(const ConfigReader& config) {
  DecoderConfig decoder = read_qwen2(config);
  decoder.qkv_bias = decoder.out_bias = config.boolean_or("attention_bias", false);
  decoder.qk_norm = true;
  return decoder;
}

}  // namespace mulciber
