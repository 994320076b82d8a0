// What the generations of Gemma share.
#pragma once

#include "models/families/families.h"

namespace mulciber {

/// Names of a layer with norms before and after each sublayer.
constexpr DecoderNames gemma_names() {
  DecoderNames names = kLlamaNames;
  names.after_attention_norm = "post_attention_layernorm";
  names.feed_forward_norm = "pre_feedforward_layernorm";
  names.after_feed_forward_norm = "post_feedforward_layernorm";
  return names;
}
constexpr const char* kGemmaEndPieces[] = {"<end_of_turn>"};

/// Gains less 1, embeddings times the root of their width, the scale onto scores. Rotation and
/// windows are the caller's.
DecoderConfig read_gemma(const ConfigReader& config, const DecoderNames& names);
/// llama.cpp scales by the size of a head but in the largest model, whose files do not say so
/// either; layers: of that one.
void complete_gemma(const GgufMetadata& metadata, uint32_t layers, Json& config);

}  // namespace mulciber
