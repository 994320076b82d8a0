// GPT-2: learned positions, layer norms, plain feed-forward networks, transposed matrices.
#include <cmath>

#include <fmt/format.h>

#include "models/families/families.h"

namespace mulciber {
namespace {

constexpr const char* kGpt2Prefixes[] = {"transformer.", ""};  // the oldest files have none

constexpr DecoderNames kGpt2Names = {.prefixes = kGpt2Prefixes,
                                     .layer = "h.",
                                     .embedding = "wte",
                                     .positions = "wpe",
                                     .final_norm = "ln_f",
                                     .output = "lm_head",
                                     .attention_norm = "ln_1",
                                     .qkv = "attn.c_attn",
                                     .attention_out = "attn.c_proj",
                                     .feed_forward_norm = "ln_2",
                                     .up = "mlp.c_fc",
                                     .down = "mlp.c_proj"};

constexpr GgufKey kGpt2Keys[] = {
    {"context_length", "n_positions"},  {"embedding_length", "n_embd"},
    {"block_count", "n_layer"},         {"feed_forward_length", "n_inner"},
    {"attention.head_count", "n_head"}, {"attention.layer_norm_epsilon", "layer_norm_epsilon"}};

constexpr DecoderNames gpt2_gguf_names() {
  DecoderNames names = kGgufNames;
  names.qkv = "attn_qkv";
  return names;
}

constexpr const char* kGpt2EndPieces[] = {"<|endoftext|>"};

DecoderConfig read_gpt2(const ConfigReader& config) {
  const auto positive = [&](const char* key, int64_t most) {
    return static_cast<uint32_t>(config.integer(key, 1, most));
  };
  DecoderConfig decoder;
  // The files store matrices as Conv1D does: (inputs, outputs).
  decoder.files = {.names = kGpt2Names, .matrices = SourceForm::kTransposed};
  decoder.width = positive("n_embd", kWidest);
  decoder.vocabulary = positive("vocab_size", kLargestVocab);
  decoder.context = positive("n_positions", kMostContext);
  decoder.layers.resize(positive("n_layer", kMostLayers), {.rope = std::nullopt});
  decoder.embedding.learned_positions = true;
  decoder.norms = {
      .kind = NormKind::kLayer,
      .bias = true,
      .epsilon = static_cast<float>(config.number_or("layer_norm_epsilon", 1e-5, 0, 1))};
  DecoderAttention& attention = decoder.attention;
  attention.heads = attention.kv_heads = positive("n_head", kMostHeads);
  if (decoder.width % attention.heads != 0)
    config.fail("n_head", fmt::format("is {}, which does not divide n_embd, {}", attention.heads,
                                      decoder.width));
  attention.head_size = decoder.width / attention.heads;
  attention.scale = config.boolean_or("scale_attn_weights", true)
                        ? 1 / std::sqrt(static_cast<float>(attention.head_size))
                        : 1.0f;
  attention.qkv_bias = attention.out_bias = true;
  require_absent(config, "scale_attn_by_inverse_layer_idx");
  require_absent(config, "add_cross_attention");
  decoder.feed_forward = {.kind = FeedForwardKind::kPlain,
                          .hidden = static_cast<uint32_t>(config.integer_or(
                              "n_inner", 4 * int64_t{decoder.width}, 1, 4 * kWidest)),
                          .activation = read_activation(config, "activation_function"),
                          .bias = true,
                          .experts = {}};
  decoder.output.tied = config.boolean_or("tie_word_embeddings", true);
  return decoder;
}

}  // namespace

constinit const DecoderFamily kGpt2 = {.model_type = "gpt2",
                                       .read = read_gpt2,
                                       .gguf = GgufFamily{.architecture = "gpt2",
                                                          .keys = kGpt2Keys,
                                                          .activation_key = "activation_function",
                                                          .activation = "gelu_new",
                                                          .names = gpt2_gguf_names()},
                                       .end_pieces = kGpt2EndPieces};

}  // namespace mulciber
