// Gemma 2: soft caps, alternating windows, norms around sublayers; also shared parts of gemma.h.
#include "models/families/gemma.h"

#include <cmath>
#include <nlohmann/json.hpp>

namespace mulciber {
namespace {

DecoderConfig read_gemma2(const ConfigReader& config) {
  DecoderConfig decoder = read_gemma(config, gemma_names());
  // null means none.
  const auto soft_cap = [&](const char* key, double usual) {
    return static_cast<float>(
        config.number_or(key, config.json().contains(key) ? 0 : usual, 0, 1e9));
  };
  decoder.attention.soft_cap = soft_cap("attn_logit_softcapping", 50);
  decoder.output.soft_cap = soft_cap("final_logit_softcapping", 30);
  read_one_rope(config, decoder);
  // Every other layer has a sliding window.
  read_windows(config, decoder, [](uint32_t layer, const ConfigReader&) { return layer % 2 == 0; });
  return decoder;
}

void complete_gemma2(const GgufMetadata& metadata, Json& config) {
  complete_gemma(metadata, 46, config);
}

}  // namespace

DecoderConfig read_gemma(const ConfigReader& config, const DecoderNames& names) {
  DecoderConfig decoder = read_llama_like(config);
  decoder.files = {.names = names, .gains = SourceForm::kPlusOne};
  // transformers rounds the factor to the type of the embeddings, which changes it for bfloat16
  // files.
  decoder.embedding.multiplier = std::sqrt(static_cast<float>(decoder.width));
  decoder.norms.place = NormPlace::kBoth;
  decoder.attention.scale =
      static_cast<float>(1 / std::sqrt(config.number_or("query_pre_attn_scalar", 256, 1e-6, 1e9)));
  decoder.output.tied = config.boolean_or("tie_word_embeddings", true);
  return decoder;
}

void complete_gemma(const GgufMetadata& metadata, uint32_t layers, Json& config) {
  const bool largest = metadata.number("block_count", 0) == layers;
  config["query_pre_attn_scalar"] =
      largest ? metadata.number("embedding_length", 0) / metadata.number("attention.head_count", 0)
              : metadata.head_size();
}

constinit const DecoderFamily kGemma2 = {.model_type = "gemma2",
                                         .read = read_gemma2,
                                         .gguf = GgufFamily{.architecture = "gemma2",
                                                            .activation = "gelu_pytorch_tanh",
                                                            .complete = complete_gemma2},
                                         .end_pieces = kGemmaEndPieces};

}  // namespace mulciber
