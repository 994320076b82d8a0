// DeBERTa, versions 2 and 3: disentangled attention.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "models/families/encoder_family.h"

namespace mulciber {
namespace {

constexpr const char* kDebertaPrefixes[] = {"", "deberta."};

/// Reads `pos_att_type`, a list or a string with "|" between the entries.
void read_terms(const ConfigReader& config, DisentangledConfig& disentangled) {
  disentangled.content_to_position = disentangled.position_to_content = false;
  if (!config.has("pos_att_type")) return;
  const Json& value = config.value("pos_att_type");
  std::string all;
  if (value.is_string()) {
    all = value.get<std::string>();
  } else {
    for (const Json& entry : config.list("pos_att_type"))
      all += entry.is_string() ? entry.get<std::string>() + "|" : "?|";
  }
  for (size_t begin = 0; begin < all.size();) {
    const size_t end = std::min(all.find('|', begin), all.size());
    const std::string term = all.substr(begin, end - begin);
    if (term == "c2p")
      disentangled.content_to_position = true;
    else if (term == "p2c")
      disentangled.position_to_content = true;
    else if (!term.empty())
      config.fail("pos_att_type", "names '" + printable(term) + "'; c2p and p2c are known");
    begin = end + 1;
  }
}

DisentangledConfig read_disentangled(const ConfigReader& config, uint32_t context) {
  if (!config.boolean_or("relative_attention", false))
    config.fail("relative_attention", "is not true: DeBERTa without distances is not known");
  if (!config.boolean_or("share_att_key", false))
    config.fail("share_att_key", "is not true: distances with matrices of their own are not known");
  DisentangledConfig disentangled;
  const std::int64_t most = config.integer_or("max_relative_positions", -1, -1, kMostContext);
  disentangled.max_distance = most < 1 ? context : static_cast<uint32_t>(most);
  const std::int64_t buckets = config.integer_or("position_buckets", -1, -1, kMostContext);
  if (buckets > 0) {
    disentangled.span = disentangled.buckets = static_cast<uint32_t>(buckets);
    if (buckets < 4 || disentangled.max_distance <= disentangled.buckets / 2 + 1)
      config.fail("position_buckets",
                  fmt::format("is {}, of distances up to {}", buckets, disentangled.max_distance));
  } else {
    disentangled.span = disentangled.max_distance;
  }
  read_terms(config, disentangled);
  const std::string norm = config.text_or("norm_rel_ebd", "none");
  if (norm != "none" && norm != "layer_norm")
    config.fail("norm_rel_ebd", "is '" + printable(norm) + "'; none and layer_norm are known");
  disentangled.norm = norm == "layer_norm";
  return disentangled;
}

EncoderConfig read_deberta(const ConfigReader& config) {
  EncoderConfig encoder = read_bert_like(config);
  encoder.names = {.prefixes = kDebertaPrefixes,
                   .words = "embeddings.word_embeddings",
                   .positions = "embeddings.position_embeddings",
                   .types = "embeddings.token_type_embeddings",
                   .embedding_norm = "embeddings.LayerNorm",
                   .distances = "encoder.rel_embeddings",
                   .distances_norm = "encoder.LayerNorm",
                   .layer = "encoder.layer.",
                   .q = "attention.self.query_proj",
                   .k = "attention.self.key_proj",
                   .v = "attention.self.value_proj",
                   .attention_out = "attention.output.dense",
                   .attention_norm = "attention.output.LayerNorm",
                   .up = "intermediate.dense",
                   .down = "output.dense",
                   .feed_forward_norm = "output.LayerNorm"};
  encoder.embedding.types = static_cast<uint32_t>(config.integer_or("type_vocab_size", 0, 0, 1024));
  if (encoder.embedding.columns != encoder.width)
    config.fail("embedding_size", "is not hidden_size, which is not known of DeBERTa");
  if (config.integer_or("conv_kernel_size", 0, 0, 1024) > 0)
    config.fail("conv_kernel_size", "asks for a convolution, which is not known");
  if (!config.boolean_or("position_biased_input", true))
    encoder.embedding.positions = EncoderPositions::kNone;
  encoder.disentangled = read_disentangled(config, encoder.context);
  encoder.head = {.dense = "pooler.dense",
                  .activation = config.has("pooler_hidden_act")
                                    ? read_activation(config, "pooler_hidden_act")
                                    : Activation::kGelu};
  return encoder;
}

}  // namespace

constinit const EncoderFamily kDebertaV2 = {"deberta-v2", read_deberta};

}  // namespace mulciber
