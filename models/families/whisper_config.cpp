#include "models/families/whisper_config.h"

#include <nlohmann/json.hpp>

#include "mulciber/error.h"

namespace mulciber {
namespace {

constexpr uint32_t kEnglishVocabulary = 51864;

std::vector<uint32_t> suppressed_ids(const ConfigReader& config, const ConfigReader* generation,
                                     const char* key, uint32_t vocabulary) {
  // -1 means the reference implementation's own list, which current files spell out.
  const ConfigReader& reader = generation && generation->has(key) ? *generation : config;
  const Json* list = reader.find(key);
  if (list && list->is_array() && list->size() == 1 && list->front() == -1) return {};
  const std::vector<int32_t> ids = reader.ids(key, vocabulary);
  return {ids.begin(), ids.end()};
}

std::vector<std::pair<uint32_t, uint32_t>> read_alignment_heads(const ConfigReader& generation,
                                                                const WhisperConfig& config) {
  std::vector<std::pair<uint32_t, uint32_t>> heads;
  if (!generation.has("alignment_heads")) return heads;
  for (const Json& pair : generation.list("alignment_heads")) {
    const bool fits = pair.is_array() && pair.size() == 2 && pair[0].is_number_unsigned() &&
                      pair[1].is_number_unsigned() &&
                      pair[0].get<uint64_t>() < config.decoder_layers &&
                      pair[1].get<uint64_t>() < config.decoder_heads;
    if (!fits)
      generation.fail("alignment_heads", "holds what is no pair of a layer and a head of it");
    heads.emplace_back(pair[0].get<uint32_t>(), pair[1].get<uint32_t>());
  }
  return heads;
}

}  // namespace

WhisperConfig read_whisper_config(const ConfigReader& config, const ConfigReader* generation) {
  if (const std::string type = config.text("model_type"); type != "whisper")
    config.fail("model_type", "is '" + printable(type) + "', not 'whisper'");
  const auto positive = [&](const char* key, std::int64_t most) {
    return static_cast<std::uint32_t>(config.integer(key, 1, most));
  };
  WhisperConfig result;
  result.width = positive("d_model", kWidest);
  result.mels = positive("num_mel_bins", 1024);
  result.encoder_layers = positive("encoder_layers", kMostLayers);
  result.encoder_heads = positive("encoder_attention_heads", kMostHeads);
  result.encoder_ffn = positive("encoder_ffn_dim", kWidest);
  result.decoder_layers = positive("decoder_layers", kMostLayers);
  result.decoder_heads = positive("decoder_attention_heads", kMostHeads);
  result.decoder_ffn = positive("decoder_ffn_dim", kWidest);
  result.vocabulary = positive("vocab_size", kLargestVocab);
  result.positions = static_cast<uint32_t>(config.integer("max_source_positions", 2, 1 << 16));
  result.context = static_cast<uint32_t>(config.integer("max_target_positions", 2, 1 << 16));
  result.activation = read_activation(config, "activation_function");
  result.scale_embedding = config.boolean_or("scale_embedding", false);
  for (const auto& [key, heads] : {std::pair("encoder_attention_heads", result.encoder_heads),
                                   std::pair("decoder_attention_heads", result.decoder_heads)})
    if (result.width % heads != 0)
      config.fail(key, "is " + std::to_string(heads) + ", which does not divide d_model, " +
                           std::to_string(result.width));
  if (!config.boolean_or("tie_word_embeddings", true))
    config.fail("tie_word_embeddings", "is false, and Whisper's output is its embedding");
  result.generation = read_generation_config(config, generation, result.vocabulary);
  if (result.generation.eos.size() != 1) config.fail("eos_token_id", "is not one id");
  result.suppressed = suppressed_ids(config, generation, "suppress_tokens", result.vocabulary);
  result.suppressed_first =
      suppressed_ids(config, generation, "begin_suppress_tokens", result.vocabulary);
  // English models have one id less than the first multilingual ones.
  const bool by_vocabulary = result.vocabulary != kEnglishVocabulary;
  result.multilingual =
      generation ? generation->boolean_or("is_multilingual", by_vocabulary) : by_vocabulary;
  if (generation) result.alignment_heads = read_alignment_heads(*generation, result);
  return result;
}

WhisperConfig read_whisper_config(const Checkpoint& checkpoint) {
  const ConfigReaders readers(checkpoint);
  return read_whisper_config(readers.config, readers.generation_or_null());
}

}  // namespace mulciber
