// Llama, the common decoder, and Mistral, whose first models have a sliding window.
#include "models/families/families.h"

namespace mulciber {
namespace {

DecoderConfig read_llama(const ConfigReader& config) {
  DecoderConfig decoder = read_llama_like(config);
  read_one_rope(config, decoder);
  // Mistral's first models have a sliding window in every layer; Llama's lack the key.
  read_windows(config, decoder, [](uint32_t, const ConfigReader&) { return true; });
  return decoder;
}

// End pieces of Llama 3, and of the many models of this architecture that were trained on ChatML.
constexpr const char* kLlamaEndPieces[] = {"<|eot_id|>", "<|end_of_text|>", "<|im_end|>",
                                           "<|endoftext|>"};

}  // namespace

constinit const DecoderFamily kLlama = {
    .model_type = "llama",
    .read = read_llama,
    // The converter permutes the rows of queries and keys into the order of the original Llama.
    .gguf =
        GgufFamily{
            .architecture = "llama", .activation = "silu", .pairs = RotaryPairs::kNeighbours},
    .end_pieces = kLlamaEndPieces};

constinit const DecoderFamily kMistral = {
    .model_type = "mistral", .read = read_llama, .end_pieces = kLlamaEndPieces, .as_gguf = &kLlama};

}  // namespace mulciber
