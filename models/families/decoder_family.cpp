#include "models/families/decoder_family.h"

#include <nlohmann/json.hpp>

#include "models/families/gguf_config.h"

namespace mulciber {

DecoderConfig read_decoder_config(const Checkpoint& checkpoint, const DecoderFamily& family) {
  DecoderConfig config;
  if (checkpoint.gguf()) {
    const GgufFamily& gguf = family.gguf.value();
    const Json metadata = gguf_config(checkpoint, gguf);
    const ConfigReader reader(metadata, checkpoint.path().string());
    config = family.read(reader);
    config.generation = read_generation_config(reader, nullptr, config.vocabulary);
    adapt_to_gguf(config, checkpoint, gguf);
  } else {
    const std::string where = (checkpoint.folder() / "config.json").string();
    config = family.read(ConfigReader(checkpoint.config(), where));
    config.generation = read_generation_config(checkpoint, config.vocabulary);
  }
  config.end_pieces = family.end_pieces;
  return config;
}

}  // namespace mulciber
