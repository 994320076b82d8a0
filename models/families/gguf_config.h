// A GGUF file's metadata as the configuration that Hugging Face would have written.
#pragma once

#include "models/families/decoder_family.h"

namespace mulciber {

/// Keys as in config.json. Throws ModelError naming the metadata key that is missing, of the wrong
/// type, or asks for something that is not supported. Source of the keys:
/// https://github.com/ggml-org/ggml/blob/master/docs/gguf.md and llama.cpp's converters.
Json gguf_config(const Checkpoint& checkpoint, const GgufFamily& family);

/// What a GGUF file holds in another form than Hugging Face's: its names, gains with their 1,
/// matrices as (outputs, inputs), rotary pairs, factors of frequencies.
void adapt_to_gguf(DecoderConfig& decoder, const Checkpoint& checkpoint, const GgufFamily& family);

}  // namespace mulciber
