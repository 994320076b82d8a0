#include "models/families/marian_config.h"

#include "mulciber/error.h"

namespace mulciber {

MarianConfig read_marian_config(const Checkpoint& checkpoint) {
  const ConfigReaders readers(checkpoint);
  return read_marian_config(readers.config, readers.generation_or_null());
}

MarianConfig read_marian_config(const ConfigReader& config, const ConfigReader* generation) {
  if (const std::string type = config.text("model_type"); type != "marian")
    config.fail("model_type", "is '" + printable(type) + "', not 'marian'");
  const auto positive = [&](const char* key, std::int64_t most) {
    return static_cast<std::uint32_t>(config.integer(key, 1, most));
  };
  MarianConfig result;
  result.d_model = positive("d_model", kWidest);
  result.encoder_layers = positive("encoder_layers", kMostLayers);
  result.decoder_layers = positive("decoder_layers", kMostLayers);
  result.encoder_heads = positive("encoder_attention_heads", kMostHeads);
  result.decoder_heads = positive("decoder_attention_heads", kMostHeads);
  for (const auto& [key, heads] : {std::pair("encoder_attention_heads", result.encoder_heads),
                                   std::pair("decoder_attention_heads", result.decoder_heads)})
    if (result.d_model % heads != 0)
      config.fail(key, "is " + std::to_string(heads) + ", which does not divide d_model, " +
                           std::to_string(result.d_model));
  result.encoder_ffn = positive("encoder_ffn_dim", kWidest);
  result.decoder_ffn = positive("decoder_ffn_dim", kWidest);
  result.source_vocab = positive("vocab_size", kLargestVocab);
  result.target_vocab = static_cast<std::uint32_t>(
      config.integer_or("decoder_vocab_size", result.source_vocab, 1, kLargestVocab));
  result.context = positive("max_position_embeddings", kMostContext);
  result.activation = read_activation(config, "activation_function");
  result.scale_embedding = config.boolean_or("scale_embedding", false);
  result.shared_embeddings = config.boolean_or("share_encoder_decoder_embeddings", true);
  result.tied_output = config.boolean_or("tie_word_embeddings", true);
  result.normalize_before = config.boolean_or("normalize_before", false);
  result.normalize_embedding = config.boolean_or("normalize_embedding", false);
  // A pre-norm stack leaves its sum unnormalized, so it needs a closing norm unless the file says
  // otherwise.
  result.final_norm = config.boolean_or("add_final_layer_norm", result.normalize_before);
  result.static_positions = config.boolean_or("static_position_embeddings", true);
  result.norm_epsilon = config.number_or("layer_norm_eps", 1e-5, 0, 1);
  if (result.shared_embeddings && result.source_vocab != result.target_vocab)
    config.fail("decoder_vocab_size",
                "is " + std::to_string(result.target_vocab) + ", but one embedding table of " +
                    std::to_string(result.source_vocab) + " rows is shared with the encoder");

  result.generation = read_generation_config(config, generation, result.target_vocab);
  GenerationConfig& ids = result.generation;
  if (ids.eos.empty()) config.fail("eos_token_id", "is missing");
  if (!ids.pad) config.fail("pad_token_id", "is missing");
  // Marian starts its decoder with the padding token.
  if (!ids.decoder_start) ids.decoder_start = ids.pad;
  return result;
}

}  // namespace mulciber
