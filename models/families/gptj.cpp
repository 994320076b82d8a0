// GPT-J: parallel sublayers with one layer norm, partial RoPE, and an output bias.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "models/families/families.h"

namespace mulciber {
namespace {

constexpr const char* kGptJPrefixes[] = {"transformer."};

constexpr DecoderNames kGptJNames = {.prefixes = kGptJPrefixes,
                                     .layer = "h.",
                                     .embedding = "wte",
                                     .final_norm = "ln_f",
                                     .output = "lm_head",
                                     .output_prefixes = kNoPrefix,
                                     .attention_norm = "ln_1",
                                     .q = "attn.q_proj",
                                     .k = "attn.k_proj",
                                     .v = "attn.v_proj",
                                     .attention_out = "attn.out_proj",
                                     .up = "mlp.fc_in",
                                     .down = "mlp.fc_out"};

DecoderConfig read_gptj(const ConfigReader& given) {
  const int64_t width = given.integer("n_embd", 1, kWidest),
                heads = given.integer("n_head", 1, kMostHeads);
  Json json = given.json();
  json["hidden_size"] = width;
  json["num_attention_heads"] = heads;
  json["num_hidden_layers"] = given.integer("n_layer", 1, kMostLayers);
  json["max_position_embeddings"] = given.integer("n_positions", 1, kMostContext);
  json["intermediate_size"] = given.integer_or("n_inner", 4 * width, 1, 4 * kWidest);
  json["hidden_act"] = given.text_or("activation_function", "gelu_new");
  if (width % heads == 0) {
    const int64_t rotated = given.integer_or("rotary_dim", 64, 2, kWidest);
    if (rotated > width / heads)
      given.fail("rotary_dim",
                 fmt::format("is {}, heads have {} elements", rotated, width / heads));
    json["partial_rotary_factor"] =
        static_cast<double>(rotated) / static_cast<double>(width / heads);
  }
  const ConfigReader config(json, given.where(), given.remedy());
  DecoderConfig decoder = read_llama_like(config);
  decoder.files.names = kGptJNames;
  use_layer_norms(config, "layer_norm_epsilon", true, decoder);
  decoder.residual = Residual::kParallelSharedNorm;
  read_one_rope(config, decoder);
  decoder.ropes[0].pairs = RotaryPairs::kNeighbours;
  decoder.feed_forward.kind = FeedForwardKind::kPlain;
  decoder.feed_forward.bias = true;
  decoder.output.bias = true;  // also if tied
  return decoder;
}

constexpr GgufKey kGptJKeys[] = {{"context_length", "n_positions"},
                                 {"embedding_length", "n_embd"},
                                 {"block_count", "n_layer"},
                                 {"feed_forward_length", "n_inner"},
                                 {"attention.head_count", "n_head"},
                                 {"attention.layer_norm_epsilon", "layer_norm_epsilon"},
                                 {"rope.dimension_count", "rotary_dim"},
                                 {"rope.freq_base", "rope_theta"}};

constexpr const char* kGptJEndPieces[] = {"<|endoftext|>"};

}  // namespace

constinit const DecoderFamily kGptJ = {.model_type = "gptj",
                                       .read = read_gptj,
                                       .gguf = GgufFamily{.architecture = "gptj",
                                                          .keys = kGptJKeys,
                                                          .activation_key = "activation_function",
                                                          .activation = "gelu_new",
                                                          .names = kPlainGgufNames,
                                                          .pairs = RotaryPairs::kNeighbours},
                                       .end_pieces = kGptJEndPieces};

}  // namespace mulciber
