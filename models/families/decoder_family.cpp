#include "models/families/decoder_family.h"

#include <nlohmann/json.hpp>

#include "models/families/gguf_config.h"

namespace mulciber {
namespace {

/// Removes ids outside the vocabulary, which files contain that keep transformers' defaults; such
/// tokens never occur.
Json with_known_ids(Json json, uint32_t vocabulary) {
  const auto unknown = [&](const Json& id) {
    return id.is_number_integer() && id.get<int64_t>() >= vocabulary;
  };
  for (const char* key : {"bos_token_id", "eos_token_id", "pad_token_id"}) {
    const auto found = json.find(key);
    if (found == json.end()) continue;
    if (unknown(*found)) {
      json.erase(found);
    } else if (found->is_array()) {
      Json known = Json::array();
      for (const Json& id : *found)
        if (!unknown(id)) known.push_back(id);
      *found = std::move(known);
    }
  }
  return json;
}

/// The order of rotary pairs; kHalves if no layer has a rotary embedding.
RotaryPairs pairs_of(const DecoderConfig& config) {
  return config.ropes.empty() ? RotaryPairs::kHalves : config.ropes.front().pairs;
}

}  // namespace

GenerationConfig read_decoder_generation(const Checkpoint& checkpoint, const Json& given,
                                         uint32_t vocabulary) {
  const ConfigReaders readers(checkpoint);
  const Json config = with_known_ids(given, vocabulary);
  const Json generation =
      readers.generation ? with_known_ids(readers.generation->json(), vocabulary) : Json();
  const ConfigReader of_config(config, readers.config.where());
  if (!readers.generation) return read_generation_config(of_config, nullptr, vocabulary);
  const ConfigReader of_generation(generation, readers.generation->where());
  return read_generation_config(of_config, &of_generation, vocabulary);
}

DecoderConfig read_decoder_config(const Checkpoint& checkpoint, const DecoderFamily& family) {
  DecoderConfig config;
  if (checkpoint.gguf()) {
    const GgufFamily& gguf = family.gguf.value();
    const Json metadata = gguf_config(checkpoint, gguf);
    const ConfigReader reader(metadata, checkpoint.path().string());
    config = family.read(reader);
    config.generation = read_generation_config(reader, nullptr, config.vocabulary);
    config.other_files = {.files = config.files, .pairs = pairs_of(config), .architecture = {}};
    adapt_to_gguf(config, checkpoint, gguf);
  } else {
    const std::string where = (checkpoint.folder() / "config.json").string();
    config = family.read(ConfigReader(checkpoint.config(), where));
    config.generation = read_decoder_generation(checkpoint, checkpoint.config(), config.vocabulary);
    if (const auto& gguf = (family.as_gguf ? *family.as_gguf : family).gguf)
      config.other_files = {.files = {.names = gguf->names},
                            .pairs = gguf->pairs,
                            .architecture = gguf->architecture};
  }
  config.end_pieces = family.end_pieces;
  return config;
}

}  // namespace mulciber
