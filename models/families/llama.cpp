#include "models/families/families.h"

namespace mulciber {

DecoderConfig read_llama(const ConfigReader& config) {
  DecoderConfig decoder = read_llama_like(config);
  decoder.qkv_bias = decoder.out_bias = config.boolean_or("attention_bias", false);
  decoder.ropes = {
      read_rope_of(config, nullptr, {decoder.head_size, 10000, decoder.max_positions})};
  // Mistral's first models slide in every layer; Llama's have no such key.
  read_windows(config, decoder, [](uint32_t, const ConfigReader&) { return true; });
  return decoder;
}

}  // namespace mulciber
