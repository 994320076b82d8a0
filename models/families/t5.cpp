// T5, with a plain or a gated feed-forward network (T5 v1.1, Flan-T5), and mT5.
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "models/families/encoder_decoder_family.h"

namespace mulciber {
namespace {

constexpr const char* kT5Prefixes[] = {""};

// Positions are relative, so files give no limit of a text's length; kT5Context is the limit here.
// T5 was pretrained on 512 tokens, the longest output unless the files set a length.
constexpr uint32_t kT5Context = 1 << 15;
constexpr std::int32_t kT5Length = 512;

constexpr Seq2SeqStackNames kT5Encoder = {
    .embedding = "encoder.embed_tokens",
    .final_norm = "encoder.final_layer_norm",
    .relative_bias = "encoder.block.0.layer.0.SelfAttention.relative_attention_bias",
    .layer = "encoder.block.",
    .q = "layer.0.SelfAttention.q",
    .k = "layer.0.SelfAttention.k",
    .v = "layer.0.SelfAttention.v",
    .out = "layer.0.SelfAttention.o",
    .attention_norm = "layer.0.layer_norm",
    .up = "layer.1.DenseReluDense.wi",
    .down = "layer.1.DenseReluDense.wo",
    .feed_forward_norm = "layer.1.layer_norm"};

constexpr Seq2SeqStackNames t5_decoder() {
  Seq2SeqStackNames names = kT5Encoder;
  names.embedding = "decoder.embed_tokens";
  names.final_norm = "decoder.final_layer_norm";
  names.relative_bias = "decoder.block.0.layer.0.SelfAttention.relative_attention_bias";
  names.layer = "decoder.block.";
  names.cross_q = "layer.1.EncDecAttention.q";
  names.cross_k = "layer.1.EncDecAttention.k";
  names.cross_v = "layer.1.EncDecAttention.v";
  names.cross_out = "layer.1.EncDecAttention.o";
  names.cross_norm = "layer.1.layer_norm";
  names.up = "layer.2.DenseReluDense.wi";
  names.down = "layer.2.DenseReluDense.wo";
  names.feed_forward_norm = "layer.2.layer_norm";
  return names;
}

/// Reads `feed_forward_proj`: an activation, with the prefix "gated-" for gated networks.
void read_feed_forward(const ConfigReader& config, EncoderDecoderConfig& result) {
  std::string name = config.text_or("feed_forward_proj", "relu");
  result.feed_forward.bias = false;
  result.feed_forward.gated = name.starts_with("gated-");
  if (result.feed_forward.gated) {
    name = name.substr(6);
    if (name == "gelu") name = "gelu_new";  // transformers reads "gated-gelu" so
    result.names.encoder.gate = "layer.1.DenseReluDense.wi_0";
    result.names.encoder.up = "layer.1.DenseReluDense.wi_1";
    result.names.decoder.gate = "layer.2.DenseReluDense.wi_0";
    result.names.decoder.up = "layer.2.DenseReluDense.wi_1";
  }
  const Json activation = {{"feed_forward_proj", name}};
  result.feed_forward.activation = read_activation(
      ConfigReader(activation, config.where(), config.remedy()), "feed_forward_proj");
}

T5Buckets read_buckets(const ConfigReader& config) {
  T5Buckets buckets = {.buckets = static_cast<uint32_t>(
                           config.integer_or("relative_attention_num_buckets", 32, 4, 4096)),
                       .max_distance = static_cast<uint32_t>(
                           config.integer_or("relative_attention_max_distance", 128, 1, 1 << 16))};
  if (buckets.buckets % 4 != 0)
    config.fail("relative_attention_num_buckets", "is no multiple of 4");
  // Half of the decoder's buckets hold a single distance each, the others ranges of longer ones.
  if (buckets.max_distance <= buckets.buckets / 2)
    config.fail("relative_attention_max_distance",
                fmt::format("is {}, which {} buckets pass", buckets.max_distance, buckets.buckets));
  return buckets;
}

EncoderDecoderConfig read_t5(const ConfigReader& config, const ConfigReader* generation) {
  const auto positive = [&](const char* key, std::int64_t most) {
    return static_cast<uint32_t>(config.integer(key, 1, most));
  };
  EncoderDecoderConfig result;
  result.names = {
      .prefixes = kT5Prefixes, .shared = "shared", .encoder = kT5Encoder, .decoder = t5_decoder()};
  result.width = positive("d_model", kWidest);
  result.encoder = {.layers = positive("num_layers", kMostLayers),
                    .heads = positive("num_heads", kMostHeads),
                    .head_size = positive("d_kv", kWidest),
                    .hidden = positive("d_ff", kWidest)};
  result.decoder = result.encoder;
  result.decoder.layers = static_cast<uint32_t>(
      config.integer_or("num_decoder_layers", result.encoder.layers, 1, kMostLayers));
  result.source_vocabulary = result.target_vocabulary = positive("vocab_size", kLargestVocab);
  result.context = kT5Context;
  result.embedding.positions = Seq2SeqPositions::kNone;
  result.norms = {
      .kind = NormKind::kRms,
      .place = NormPlacement::kBefore,
      .final_norm = true,
      .epsilon = static_cast<float>(config.number_or("layer_norm_epsilon", 1e-6, 0, 1))};
  result.attention = {.scale = 1.0f, .bias = false, .relative_bias = read_buckets(config)};
  read_feed_forward(config, result);
  result.output.tied = config.boolean_or("tie_word_embeddings", true);
  if (config.boolean_or("scale_decoder_outputs", result.output.tied))
    result.output.multiplier = 1 / std::sqrt(static_cast<float>(result.width));
  result.generation = read_generation_config(config, generation, result.target_vocabulary);
  GenerationConfig& ids = result.generation;
  if (!ids.decoder_start) ids.decoder_start = ids.pad;
  if (!ids.max_length && !ids.max_new_tokens) ids.max_new_tokens = kT5Length;
  return result;
}

}  // namespace

constinit const EncoderDecoderFamily kT5 = {"t5", read_t5, true};
constinit const EncoderDecoderFamily kMt5 = {"mt5", read_t5, true};

}  // namespace mulciber
