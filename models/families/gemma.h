// Shared parts of the Gemma generations.
#pragma once

#include "models/families/families.h"

namespace mulciber {

/// Tensor names with norms before and after each sublayer.
constexpr DecoderNames gemma_names() {
  DecoderNames names = kLlamaNames;
  names.after_attention_norm = "post_attention_layernorm";
  names.feed_forward_norm = "pre_feedforward_layernorm";
  names.after_feed_forward_norm = "post_feedforward_layernorm";
  return names;
}
constexpr const char* kGemmaEndPieces[] = {"<end_of_turn>"};

/// Reads the shared keys: gains are stored less 1, embeddings are multiplied by the root of their
/// width, scores have a scale. The caller sets rotary embeddings and windows.
DecoderConfig read_gemma(const ConfigReader& config, const DecoderNames& names);
/// Sets the scale of scores as llama.cpp does: by the head size, except in the largest model, which
/// files do not mark. layers: the layers of the largest model.
void complete_gemma(const GgufMetadata& metadata, uint32_t layers, Json& config);

}  // namespace mulciber
