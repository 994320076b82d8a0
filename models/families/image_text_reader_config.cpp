#include "models/families/image_text_reader_config.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "models/families/vision_family.h"

namespace mulciber {
namespace {

constexpr const char* kEncoderPrefixes[] = {"encoder."};

VisionConfig read_encoder(const ConfigReader& config) {
  const std::string type = config.text("model_type");
  std::string known;
  for (const VisionFamily* family : {&kVit, &kDeit}) {
    known += (known.empty() ? "'" : " and '") + std::string(family->model_type) + "'";
    if (type != family->model_type) continue;
    VisionConfig vision = family->read(config);
    vision.tower.names.prefixes = kEncoderPrefixes;
    vision.tower.pooler = nullptr;  // the decoder attends to all states
    vision.head = VisionHead::kNone;
    return vision;
  }
  config.fail("model_type", fmt::format("is '{}'; {} are known here", printable(type), known));
}

void read_text_decoder(const ConfigReader& config, ImageTextReaderConfig& result) {
  if (const std::string type = config.text("model_type"); type != "trocr")
    config.fail("model_type", fmt::format("is '{}'; 'trocr' is known here", printable(type)));
  const auto positive = [&](const char* key, std::int64_t most) {
    return static_cast<uint32_t>(config.integer(key, 1, most));
  };
  result.width = positive("d_model", kWidest);
  result.heads = positive("decoder_attention_heads", kMostHeads);
  result.hidden = positive("decoder_ffn_dim", kWidest);
  result.layers = positive("decoder_layers", kMostLayers);
  result.vocabulary = positive("vocab_size", kLargestVocab);
  result.context = static_cast<uint32_t>(config.integer("max_position_embeddings", 2, 1 << 16));
  if (result.width % result.heads != 0)
    config.fail("decoder_attention_heads", fmt::format("is {}, which does not divide d_model, {}",
                                                       result.heads, result.width));
  result.activation = read_activation(config, "activation_function");
  result.scale_embedding = config.boolean_or("scale_embedding", false);
  result.embedding_norm = config.boolean_or("layernorm_embedding", true);
  if (!config.boolean_or("use_learned_position_embeddings", true))
    config.fail("use_learned_position_embeddings",
                "is false; decoders with learned positions are known");
  // Width of the encoder's hidden states. transformers adds a projection where the widths differ
  // and this key is absent.
  const uint32_t width = result.vision.tower.width;
  const auto crossed = static_cast<uint32_t>(
      config.integer_or("cross_attention_hidden_size", result.width, 1, kWidest));
  if (crossed != width)
    config.fail("cross_attention_hidden_size",
                fmt::format("is {}, and the encoder is {} wide", crossed, width));
}

}  // namespace

ImageTextReaderConfig read_image_text_reader_config(const ConfigReader& config,
                                                    const ConfigReader* generation) {
  ImageTextReaderConfig result;
  result.vision = read_encoder(config.object("encoder"));
  const ConfigReader decoder = config.object("decoder");
  read_text_decoder(decoder, result);
  result.generation = read_generation_config(config, generation, result.vocabulary);
  GenerationConfig& ids = result.generation;
  // Older files have these ids only in the decoder's part.
  if (ids.eos.empty()) ids.eos = decoder.ids("eos_token_id", result.vocabulary);
  if (ids.eos.empty()) config.fail("eos_token_id", "is missing");
  if (!ids.decoder_start) {
    const std::vector<std::int32_t> start =
        decoder.ids("decoder_start_token_id", result.vocabulary);
    if (start.size() == 1) ids.decoder_start = start.front();
  }
  if (!ids.decoder_start) config.fail("decoder_start_token_id", "is missing");
  result.start = static_cast<uint32_t>(*ids.decoder_start);
  return result;
}

}  // namespace mulciber
