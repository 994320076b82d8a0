// MPNet: BERT with T5's relative position bias and without token types.
#include "models/families/encoder_family.h"

namespace mulciber {
namespace {

constexpr const char* kMpnetPrefixes[] = {"", "mpnet."};

EncoderConfig read_mpnet(const ConfigReader& config) {
  EncoderConfig encoder = read_bert_like(config);
  encoder.names = {.prefixes = kMpnetPrefixes,
                   .words = "embeddings.word_embeddings",
                   .positions = "embeddings.position_embeddings",
                   .embedding_norm = "embeddings.LayerNorm",
                   .relative_bias = "encoder.relative_attention_bias",
                   .layer = "encoder.layer.",
                   .q = "attention.attn.q",
                   .k = "attention.attn.k",
                   .v = "attention.attn.v",
                   .attention_out = "attention.attn.o",
                   .attention_norm = "attention.LayerNorm",
                   .up = "intermediate.dense",
                   .down = "output.dense",
                   .feed_forward_norm = "output.LayerNorm",
                   .pooler = "pooler.dense"};
  encoder.embedding.types = 0;
  // Positions begin after 1, whatever pad_token_id is.
  encoder.pad = 1;
  encoder.embedding.positions = EncoderPositions::kSkipPadding;
  if (encoder.context <= 2)
    config.fail("max_position_embeddings", "leaves no position behind that of the padding");
  encoder.context -= 2;
  encoder.relative_bias = T5Buckets{.buckets = static_cast<uint32_t>(config.integer_or(
                                        "relative_attention_num_buckets", 32, 4, 4096))};
  if (encoder.relative_bias->buckets % 4 != 0)
    config.fail("relative_attention_num_buckets", "is no multiple of 4");
  encoder.head = {.dense = "classifier.dense",
                  .activation = Activation::kTanh,
                  .output = "classifier.out_proj"};
  return encoder;
}

}  // namespace

constinit const EncoderFamily kMpnet = {"mpnet", read_mpnet};

}  // namespace mulciber
