// SmolLM3: Llama without RoPE in every fourth layer.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "models/families/families.h"

namespace mulciber {
namespace {

/// Whether a layer has a rotary embedding: 1 in `no_rope_layers`; without that list, all but every
/// `no_rope_layer_interval`-th layer.
bool smollm3_rotates(const ConfigReader& config, uint32_t layer, size_t layers) {
  if (!config.has("no_rope_layers"))
    return (layer + 1) % config.integer_or("no_rope_layer_interval", 4, 1, kMostLayers) != 0;
  const Json& list = config.list("no_rope_layers");
  if (list.size() != layers)
    config.fail("no_rope_layers", fmt::format("does not list {} layers", layers));
  return list[layer] != 0;
}

DecoderConfig read_smollm3(const ConfigReader& config) {
  DecoderConfig decoder = read_llama_like(config);
  decoder.output.tied = config.boolean_or("tie_word_embeddings", true);
  read_one_rope(config, decoder);
  for (uint32_t i = 0; i < decoder.layers.size(); ++i)
    if (!smollm3_rotates(config, i, decoder.layers.size())) decoder.layers[i].rope = std::nullopt;
  if (config.boolean_or("use_sliding_window", false))
    read_windows(config, decoder, [](uint32_t layer, const ConfigReader& of) {
      return !smollm3_rotates(of, layer, of.integer("num_hidden_layers", 1, kMostLayers));
    });
  return decoder;
}

constexpr const char* kSmolLm3EndPieces[] = {"<|im_end|>", "<|end_of_text|>"};

}  // namespace

constinit const DecoderFamily kSmolLm3 = {.model_type = "smollm3",
                                          .read = read_smollm3,
                                          .gguf = GgufFamily{.architecture = "smollm3",
                                                             .activation = "silu",
                                                             .pairs = RotaryPairs::kNeighbours},
                                          .end_pieces = kSmolLm3EndPieces};

}  // namespace mulciber
