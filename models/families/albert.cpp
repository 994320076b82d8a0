// ALBERT: BERT whose layers share weights in groups, and whose embeddings are narrower.
#include "models/families/encoder_family.h"

namespace mulciber {
namespace {

constexpr const char* kAlbertPrefixes[] = {"", "albert."};

EncoderConfig read_albert(const ConfigReader& config) {
  EncoderConfig encoder = read_bert_like(config);
  encoder.names = {.prefixes = kAlbertPrefixes,
                   .words = "embeddings.word_embeddings",
                   .positions = "embeddings.position_embeddings",
                   .types = "embeddings.token_type_embeddings",
                   .embedding_norm = "embeddings.LayerNorm",
                   .project = "encoder.embedding_hidden_mapping_in",
                   .layer = "encoder.albert_layer_groups.",
                   .q = "albert_layers.0.attention.query",
                   .k = "albert_layers.0.attention.key",
                   .v = "albert_layers.0.attention.value",
                   .attention_out = "albert_layers.0.attention.dense",
                   .attention_norm = "albert_layers.0.attention.LayerNorm",
                   .up = "albert_layers.0.ffn",
                   .down = "albert_layers.0.ffn_output",
                   .feed_forward_norm = "albert_layers.0.full_layer_layer_norm",
                   .pooler = "pooler"};
  encoder.embedding.columns =
      static_cast<uint32_t>(config.integer_or("embedding_size", 128, 1, kWidest));
  if (config.integer_or("inner_group_num", 1, 0, kMostLayers) != 1)
    config.fail("inner_group_num", "is not 1: groups of several layers are not known");
  const auto layers = static_cast<std::int64_t>(encoder.layers.size());
  const std::int64_t groups = config.integer_or("num_hidden_groups", 1, 1, layers);
  for (std::int64_t i = 0; i < layers; ++i)
    encoder.layers[static_cast<size_t>(i)].weights = static_cast<uint32_t>(i * groups / layers);
  encoder.head = {.dense = "pooler", .dense_in_stack = true, .activation = Activation::kTanh};
  return encoder;
}

}  // namespace

constinit const EncoderFamily kAlbert = {"albert", read_albert};

}  // namespace mulciber
