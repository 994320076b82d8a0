#include "models/families/families.h"

namespace mulciber {
namespace {

DecoderConfig read(const ConfigReader& config) {
  require_absent(config, "clip_qkv");
  DecoderConfig decoder = read_llama_like(config);
  decoder.norms = {.kind = NormKind::kLayer, .gains = false, .epsilon = 1e-5f};
  read_one_rope(config, decoder);
  return decoder;
}

constexpr const char* kEndPieces[] = {"<|endoftext|>"};

}  // namespace

constinit const DecoderFamily kOlmo = {
    .model_type = "olmo", .read = read, .end_pieces = kEndPieces};

}  // namespace mulciber
