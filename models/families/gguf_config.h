// A GGUF file's metadata as the configuration that Hugging Face would have written, and its names
// of tensors.
#pragma once

#include "checkpoints/checkpoint.h"
#include "models/families/decoder_config.h"

namespace mulciber {

/// Names of the tensors of every decoder-only family in GGUF files.
extern const DecoderNames kGgufNames;

/// `general.architecture`, or "" where the file has none.
std::string gguf_architecture(const GgufFile& file);

/// Keys as in config.json. Throws ModelError naming the metadata key that is missing, of the wrong
/// type, or asks for something that is not supported. Source of the keys:
/// https://github.com/ggml-org/ggml/blob/master/docs/gguf.md and llama.cpp's converters.
Json gguf_config(const Checkpoint& checkpoint);

/// What a GGUF file holds in another form than Hugging Face's: its names, gains with their 1,
/// matrices as (outputs, inputs), rotary pairs side by side, factors of frequencies.
void adapt_to_gguf(DecoderConfig& decoder, const Checkpoint& checkpoint);

}  // namespace mulciber
