// Nomic BERT: BERT with RoPE and gated feed-forward networks, without biases.
#include "models/families/encoder_family.h"

namespace mulciber {
namespace {

constexpr const char* kNomicPrefixes[] = {"", "nomic_bert.", "bert."};

EncoderConfig read_nomic_bert(const ConfigReader& config) {
  EncoderConfig encoder = read_bert_like(config);
  encoder.names = {.prefixes = kNomicPrefixes,
                   .words = "embeddings.word_embeddings",
                   .types = "embeddings.token_type_embeddings",
                   .embedding_norm = "emb_ln",
                   .layer = "encoder.layers.",
                   .qkv = "attn.Wqkv",
                   .attention_out = "attn.out_proj",
                   .attention_norm = "norm1",
                   .gate = "mlp.fc12",
                   .up = "mlp.fc11",
                   .down = "mlp.fc2",
                   .feed_forward_norm = "norm2"};
  encoder.embedding.positions = EncoderPositions::kNone;
  encoder.attention_bias = encoder.feed_forward_bias = false;
  encoder.gated = true;
  encoder.ropes = {read_rope_of(config, nullptr, {encoder.head_size(), 1000, encoder.context})};
  for (EncoderLayerConfig& layer : encoder.layers) layer.rope = 0;
  if (encoder.task == EncoderTask::kClassify)
    config.fail("architectures", "asks for a classifier, which this family is not known to have");
  return encoder;
}

constexpr EncoderGguf kNomicGguf = {
    {.architecture = "nomic-bert", .keys = kBertKeys, .activation = "silu"}, kGgufBertNames};

}  // namespace

constinit const EncoderFamily kNomicBert = {"nomic_bert", read_nomic_bert, &kNomicGguf};

}  // namespace mulciber
