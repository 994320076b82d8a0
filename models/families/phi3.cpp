// Phi-3 and Phi-4: fused QKV and gate-up matrices, LongRoPE, and a sliding window.
#include "models/families/families.h"

#include <nlohmann/json.hpp>

namespace mulciber {
namespace {

constexpr DecoderNames phi3_names() {
  DecoderNames names = kLlamaNames;
  names.qkv = "self_attn.qkv_proj";
  names.gate_up = "mlp.gate_up_proj";
  return names;
}

constexpr DecoderNames phi3_gguf_names() {
  DecoderNames names = kGgufNames;
  names.qkv = "attn_qkv";
  names.gate_up = "ffn_up";
  return names;
}

DecoderConfig read_phi3(const ConfigReader& config) {
  DecoderConfig decoder = read_llama_like(config);
  decoder.files.names = phi3_names();
  read_one_rope(config, decoder);
  read_windows(config, decoder, [](uint32_t, const ConfigReader&) { return true; });
  return decoder;
}

/// GGUF files store LongRoPE's factors as tensors.
void complete_phi3(const GgufMetadata& metadata, Json& config) {
  // 0 means no window.
  if (metadata.number("attention.sliding_window", 0) == 0) config.erase("sliding_window");
  const auto pairs =
      static_cast<uint64_t>(metadata.number("rope.dimension_count", metadata.head_size()) / 2);
  const std::vector<double> factors = metadata.factors("rope_factors_short.weight", pairs);
  if (factors.empty()) return;
  config["rope_scaling"] = {{"rope_type", "longrope"},
                            {"short_factor", factors},
                            {"long_factor", metadata.factors("rope_factors_long.weight", pairs)},
                            {"attention_factor", metadata.number("rope.scaling.attn_factor", 1)}};
  config["original_max_position_embeddings"] =
      metadata.number("rope.scaling.original_context_length", metadata.number("context_length", 0));
}

constexpr const char* kPhi3EndPieces[] = {"<|end|>", "<|endoftext|>"};

}  // namespace

constinit const DecoderFamily kPhi3 = {.model_type = "phi3",
                                       .read = read_phi3,
                                       .gguf = GgufFamily{.architecture = "phi3",
                                                          .activation = "silu",
                                                          .names = phi3_gguf_names(),
                                                          .complete = complete_phi3},
                                       .end_pieces = kPhi3EndPieces};

}  // namespace mulciber
