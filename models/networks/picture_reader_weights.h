// The weights of a model that reads pictures, and its decoder.
#pragma once

#include "checkpoints/weights.h"
#include "models/families/picture_reader_config.h"
#include "models/networks/text_decoder.h"

namespace mulciber {

class Weights;

/// Names, shapes and source names of every weight: the picture's tower, then the decoder.
WeightTable picture_reader_weight_table(const PictureReaderConfig& config,
                                        const Checkpoint& checkpoint);
/// Of weights by that table.
TextDecoder picture_reader_decoder(const PictureReaderConfig& config, const Weights& weights,
                                   DataType activations);

}  // namespace mulciber
