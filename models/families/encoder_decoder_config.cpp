#include "models/families/encoder_decoder_config.h"

#include <cmath>

#include <fmt/format.h>

#include "models/families/encoder_decoder_family.h"
#include "mulciber/error.h"

namespace mulciber {
namespace {

constexpr const char* kBartPrefixes[] = {"model.", ""};

constexpr Seq2SeqStackNames kBartEncoder = {.embedding = "encoder.embed_tokens",
                                            .positions = "encoder.embed_positions",
                                            .embedding_norm = "encoder.layernorm_embedding",
                                            .final_norm = "encoder.layer_norm",
                                            .layer = "encoder.layers.",
                                            .q = "self_attn.q_proj",
                                            .k = "self_attn.k_proj",
                                            .v = "self_attn.v_proj",
                                            .out = "self_attn.out_proj",
                                            .attention_norm = "self_attn_layer_norm",
                                            .up = "fc1",
                                            .down = "fc2",
                                            .feed_forward_norm = "final_layer_norm"};

constexpr Seq2SeqStackNames bart_decoder() {
  Seq2SeqStackNames names = kBartEncoder;
  names.embedding = "decoder.embed_tokens";
  names.positions = "decoder.embed_positions";
  names.embedding_norm = "decoder.layernorm_embedding";
  names.final_norm = "decoder.layer_norm";
  names.layer = "decoder.layers.";
  names.cross_q = "encoder_attn.q_proj";
  names.cross_k = "encoder_attn.k_proj";
  names.cross_v = "encoder_attn.v_proj";
  names.cross_out = "encoder_attn.out_proj";
  names.cross_norm = "encoder_attn_layer_norm";
  return names;
}

Seq2SeqStack read_stack(const ConfigReader& config, const std::string& stack, uint32_t width) {
  const auto positive = [&](const char* key, std::int64_t most) {
    return static_cast<uint32_t>(config.integer((stack + key).c_str(), 1, most));
  };
  const uint32_t heads = positive("_attention_heads", kMostHeads);
  if (width % heads != 0)
    config.fail((stack + "_attention_heads").c_str(),
                fmt::format("is {}, which does not divide d_model, {}", heads, width));
  return {.layers = positive("_layers", kMostLayers),
          .heads = heads,
          .head_size = width / heads,
          .hidden = positive("_ffn_dim", kWidest)};
}

}  // namespace

EncoderDecoderConfig read_encoder_decoder_config(const EncoderDecoderFamily& family,
                                                 const ConfigReader& config,
                                                 const ConfigReader* generation) {
  if (const std::string type = config.text("model_type"); type != family.model_type)
    config.fail("model_type", fmt::format("is '{}', not '{}'", printable(type), family.model_type));
  EncoderDecoderConfig result = family.read(config, generation);
  if (result.embedding.shared && result.source_vocabulary != result.target_vocabulary)
    config.fail("decoder_vocab_size",
                fmt::format("is {}, but one embedding table of {} rows is shared with the encoder",
                            result.target_vocabulary, result.source_vocabulary));
  const GenerationConfig& ids = result.generation;
  if (ids.eos.empty()) config.fail("eos_token_id", "is missing");
  if (!ids.pad) config.fail("pad_token_id", "is missing");
  return result;
}

EncoderDecoderConfig read_bart_like(const ConfigReader& config, const ConfigReader* generation) {
  const auto positive = [&](const char* key, std::int64_t most) {
    return static_cast<uint32_t>(config.integer(key, 1, most));
  };
  EncoderDecoderConfig result;
  result.names = {.prefixes = kBartPrefixes,
                  .shared = "shared",
                  .encoder = kBartEncoder,
                  .decoder = bart_decoder()};
  result.width = positive("d_model", kWidest);
  result.encoder = read_stack(config, "encoder", result.width);
  result.decoder = read_stack(config, "decoder", result.width);
  result.source_vocabulary = positive("vocab_size", kLargestVocab);
  result.target_vocabulary = static_cast<uint32_t>(
      config.integer_or("decoder_vocab_size", result.source_vocabulary, 1, kLargestVocab));
  result.context = positive("max_position_embeddings", kMostContext);
  result.feed_forward.activation = read_activation(config, "activation_function");
  if (config.boolean_or("scale_embedding", false))
    result.embedding.scale = std::sqrt(static_cast<float>(result.width));
  result.output.tied = config.boolean_or("tie_word_embeddings", true);
  result.generation = read_generation_config(config, generation, result.target_vocabulary);
  return result;
}

}  // namespace mulciber
