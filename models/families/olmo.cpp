// OLMo: layer norms without weights, and queries, keys and values clipped.
#include "models/families/families.h"

namespace mulciber {
namespace {

DecoderConfig read_olmo(const ConfigReader& config) {
  DecoderConfig decoder = read_llama_like(config);
  decoder.norms = {.kind = NormKind::kLayer, .gains = false, .epsilon = 1e-5f};
  decoder.attention.clip = static_cast<float>(config.number_or("clip_qkv", 0, 0, 1e9));
  read_one_rope(config, decoder);
  return decoder;
}

constexpr GgufKey kOlmoGgufKeys[] = {{"attention.clamp_kqv", "clip_qkv"}};

constexpr const char* kOlmoEndPieces[] = {"<|endoftext|>"};

}  // namespace

constinit const DecoderFamily kOlmo = {.model_type = "olmo",
                                       .read = read_olmo,
                                       .gguf = GgufFamily{.architecture = "olmo",
                                                          .more_keys = kOlmoGgufKeys,
                                                          .activation = "silu",
                                                          .pairs = RotaryPairs::kNeighbours},
                                       .end_pieces = kOlmoEndPieces};

}  // namespace mulciber
