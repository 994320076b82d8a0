#include "models/families/recurrent_config.h"

namespace mulciber {

RecurrentConfig read_recurrent_config(const Checkpoint& checkpoint) {
  const ConfigReader config(checkpoint.config(), (checkpoint.folder() / "config.json").string());
  // Above 256 an attention head is wider than the kernels take (ops/attention.h).
  constexpr std::int64_t kMostUnits = 256;
  const auto positive = [&](const char* key, std::int64_t most) {
    return static_cast<uint32_t>(config.integer(key, 1, most));
  };
  RecurrentConfig result;
  const std::string type = config.text("model_type");
  result.additive = type == "bahdanau";
  if (!result.additive && type != "luong")
    config.fail("model_type", "is '" + printable(type) + "', not 'bahdanau' or 'luong'");
  result.embedding_size = positive("embedding_size", kWidest);
  result.hidden_size = positive("hidden_size", kMostUnits);
  if (result.additive)
    result.attention_size = positive("attention_size", kMostUnits);
  else
    result.layers = positive("num_layers", kMostLayers);
  result.vocabulary = positive("vocab_size", kLargestVocab);
  result.context = positive("max_position_embeddings", kMostContext);
  result.scale_embedding = config.boolean_or("scale_embedding", false);
  result.generation = read_generation_config(checkpoint, result.vocabulary);
  if (result.generation.eos.empty()) config.fail("eos_token_id", "is missing");
  if (!result.generation.pad) config.fail("pad_token_id", "is missing");
  if (!result.generation.decoder_start) result.generation.decoder_start = result.generation.pad;
  return result;
}

}  // namespace mulciber
