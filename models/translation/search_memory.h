// Shapes of searches with an encoder-decoder network, and the device memory that they take.
#pragma once

#include <cstdint>

#include "models/core/model_options.h"
#include "models/generation/decoding.h"
#include "models/networks/encoder_decoder_network.h"

namespace mulciber {

/// Rounds the length of a source or target up, so that few programs serve all texts.
uint32_t padded_length(const EncoderDecoderNetwork& network, uint32_t length);

/// The shape of a search for `items` sources of at most `source_length` tokens.
SearchShape search_shape(const EncoderDecoderNetwork& network, uint32_t items,
                         uint32_t source_length, const GenerationSettings& settings);

/// Bytes of what such a search keeps between steps, its activations and its control. The network's
/// weights may be shapes alone.
uint64_t search_bytes(const EncoderDecoderNetwork& network, const SearchShape& shape);

/// Bytes of the largest tensor that kernels bind whole.
uint64_t widest_binding(const EncoderDecoderNetwork& network, const SearchShape& shape);

/// Adds to a plan what one text takes beside the weights, if options.sequences asks for it: a text
/// of options.context tokens, and a translation as long, searched with the settings of the model's
/// files. Throws ModelError for settings that searches do not support.
void plan_search(MemoryPrediction& plan, const EncoderDecoderNetwork& network,
                 const GenerationConfig& generation, const ModelOptions& options);

}  // namespace mulciber
