// OLMo 2: norms after each sublayer, and QK-norm over all heads together.
#include "models/families/families.h"

namespace mulciber {
namespace {

constexpr DecoderNames olmo2_names() {
  DecoderNames names = kLlamaNames;
  names.attention_norm = names.feed_forward_norm = nullptr;
  names.after_attention_norm = "post_attention_layernorm";
  names.after_feed_forward_norm = "post_feedforward_layernorm";
  return names;
}

DecoderConfig read_olmo2(const ConfigReader& config) {
  DecoderConfig decoder = read_llama_like(config);
  decoder.files.names = olmo2_names();
  decoder.norms.place = NormPlace::kAfter;
  decoder.norms.epsilon = static_cast<float>(config.number_or("rms_norm_eps", 1e-5, 0, 1));
  decoder.attention.qk_norm = QueryKeyNorm::kAllHeads;
  read_one_rope(config, decoder);
  return decoder;
}

constexpr const char* kOlmo2EndPieces[] = {"<|endoftext|>", "<|im_end|>"};

}  // namespace

constinit const DecoderFamily kOlmo2 = {
    .model_type = "olmo2",
    .read = read_olmo2,
    .gguf = GgufFamily{.architecture = "olmo2", .activation = "silu"},
    .end_pieces = kOlmo2EndPieces};

}  // namespace mulciber
