// BERT, and families that differ from it in names and details.
#include <nlohmann/json.hpp>

#include "models/families/encoder_family.h"

namespace mulciber {
namespace {

constexpr const char* kBertPrefixes[] = {"", "bert."};
constexpr const char* kRobertaPrefixes[] = {"", "roberta."};
constexpr const char* kDistilBertPrefixes[] = {"", "distilbert."};
constexpr const char* kElectraPrefixes[] = {"", "electra."};

constexpr EncoderNames bert_names(std::span<const char* const> prefixes) {
  return {.prefixes = prefixes,
          .words = "embeddings.word_embeddings",
          .positions = "embeddings.position_embeddings",
          .types = "embeddings.token_type_embeddings",
          .embedding_norm = "embeddings.LayerNorm",
          .layer = "encoder.layer.",
          .q = "attention.self.query",
          .k = "attention.self.key",
          .v = "attention.self.value",
          .attention_out = "attention.output.dense",
          .attention_norm = "attention.output.LayerNorm",
          .up = "intermediate.dense",
          .down = "output.dense",
          .feed_forward_norm = "output.LayerNorm"};
}

EncoderConfig read_bert(const ConfigReader& config) {
  EncoderConfig encoder = read_bert_like(config);
  encoder.names = bert_names(kBertPrefixes);
  encoder.names.pooler = "pooler.dense";
  encoder.head = {.dense = "pooler.dense", .dense_in_stack = true, .activation = Activation::kTanh};
  return encoder;
}

EncoderConfig read_roberta(const ConfigReader& config) {
  EncoderConfig encoder = read_bert_like(config);
  encoder.names = bert_names(kRobertaPrefixes);
  encoder.names.pooler = "pooler.dense";
  encoder.pad = static_cast<uint32_t>(
      config.integer_or("pad_token_id", 1, 0, std::int64_t{encoder.vocabulary} - 1));
  encoder.embedding.positions = EncoderPositions::kSkipPadding;
  if (encoder.context <= encoder.pad + 1)
    config.fail("max_position_embeddings", "leaves no position behind that of the padding");
  encoder.context -= encoder.pad + 1;
  encoder.head = {.dense = "classifier.dense",
                  .activation = Activation::kTanh,
                  .output = "classifier.out_proj"};
  return encoder;
}

/// Reads DistilBERT's configuration by translating its keys to BERT's.
EncoderConfig read_distilbert(const ConfigReader& config) {
  Json same = Json::object();
  constexpr std::pair<const char*, const char*> kKeys[] = {
      {"dim", "hidden_size"},
      {"n_heads", "num_attention_heads"},
      {"n_layers", "num_hidden_layers"},
      {"hidden_dim", "intermediate_size"},
      {"activation", "hidden_act"},
      {"vocab_size", "vocab_size"},
      {"max_position_embeddings", "max_position_embeddings"},
      {"pad_token_id", "pad_token_id"},
      {"architectures", "architectures"},
      {"id2label", "id2label"},
      {"num_labels", "num_labels"},
      {"problem_type", "problem_type"}};
  for (const auto& [key, as] : kKeys)
    if (config.has(key)) same[as] = config.value(key);
  same["type_vocab_size"] = 0;
  EncoderConfig encoder = read_bert_like(ConfigReader(same, config.where(), config.remedy()));
  encoder.names = bert_names(kDistilBertPrefixes);
  encoder.names.layer = "transformer.layer.";
  encoder.names.q = "attention.q_lin";
  encoder.names.k = "attention.k_lin";
  encoder.names.v = "attention.v_lin";
  encoder.names.attention_out = "attention.out_lin";
  encoder.names.attention_norm = "sa_layer_norm";
  encoder.names.up = "ffn.lin1";
  encoder.names.down = "ffn.lin2";
  encoder.names.feed_forward_norm = "output_layer_norm";
  encoder.head = {.dense = "pre_classifier", .activation = Activation::kRelu};
  return encoder;
}

EncoderConfig read_electra(const ConfigReader& config) {
  EncoderConfig encoder = read_bert_like(config);
  encoder.names = bert_names(kElectraPrefixes);
  encoder.names.project = "embeddings_project";
  encoder.head = {.dense = "classifier.dense",
                  .activation = Activation::kGelu,
                  .output = "classifier.out_proj"};
  return encoder;
}

// llama.cpp also converts RoBERTa and DistilBERT to this architecture
// (models/families/encoder_gguf.cpp).
constexpr EncoderGguf kBertGguf = {
    {.architecture = "bert", .keys = kBertKeys, .activation = "gelu"}, kGgufBertNames};

}  // namespace

constinit const EncoderFamily kBert = {"bert", read_bert, &kBertGguf};
constinit const EncoderFamily kRoberta = {"roberta", read_roberta};
constinit const EncoderFamily kXlmRoberta = {"xlm-roberta", read_roberta};
constinit const EncoderFamily kDistilBert = {"distilbert", read_distilbert};
constinit const EncoderFamily kElectra = {"electra", read_electra};

}  // namespace mulciber
