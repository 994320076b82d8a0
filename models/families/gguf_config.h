// Conversion of GGUF metadata to a configuration in Hugging Face's format.
#pragma once

#include "models/families/decoder_family.h"

namespace mulciber {

/// Returns the configuration with the keys of config.json. Throws ModelError naming the metadata
/// key that is missing, has the wrong type, or asks for an unsupported feature. Source of the keys:
/// https://github.com/ggml-org/ggml/blob/master/docs/gguf.md and llama.cpp's converters.
Json gguf_config(const Checkpoint& checkpoint, const GgufFamily& family);

/// Sets the layout of GGUF files in a configuration: names, gains with 1 added, matrices as
/// (outputs, inputs), rotary pairs, frequency factors.
void adapt_to_gguf(DecoderConfig& decoder, const Checkpoint& checkpoint, const GgufFamily& family);

}  // namespace mulciber
