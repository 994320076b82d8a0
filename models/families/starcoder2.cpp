// StarCoder2: layer norms, biases, a sliding window, and plain feed-forward networks.
#include "models/families/families.h"

namespace mulciber {
namespace {

constexpr DecoderNames starcoder2_names() {
  DecoderNames names = kLlamaNames;
  names.gate = nullptr;
  names.up = "mlp.c_fc";
  names.down = "mlp.c_proj";
  return names;
}

DecoderConfig read_starcoder2(const ConfigReader& config) {
  DecoderConfig decoder = read_llama_like(config);
  decoder.files.names = starcoder2_names();
  use_layer_norms(config, "norm_epsilon", true, decoder);
  const bool bias = config.boolean_or("use_bias", true);
  decoder.attention.qkv_bias = decoder.attention.out_bias = bias;
  read_one_rope(config, decoder);
  read_windows(config, decoder, [](uint32_t, const ConfigReader&) { return true; });
  decoder.feed_forward.kind = FeedForwardKind::kPlain;
  decoder.feed_forward.bias = bias;
  decoder.output.tied = config.boolean_or("tie_word_embeddings", true);
  return decoder;
}

constexpr GgufKey kStarcoder2GgufKeys[] = {epsilon_key("norm_epsilon")};

constexpr const char* kStarcoder2EndPieces[] = {"<|endoftext|>", "<file_sep>"};

}  // namespace

constinit const DecoderFamily kStarcoder2 = {.model_type = "starcoder2",
                                             .read = read_starcoder2,
                                             .gguf = GgufFamily{.architecture = "starcoder2",
                                                                .more_keys = kStarcoder2GgufKeys,
                                                                .activation = "gelu_pytorch_tanh",
                                                                .names = kPlainGgufNames},
                                             .end_pieces = kStarcoder2EndPieces};

}  // namespace mulciber
