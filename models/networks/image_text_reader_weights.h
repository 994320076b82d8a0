// Weight table and decoder of models that read text in images.
#pragma once

#include "checkpoints/weights.h"
#include "models/families/image_text_reader_config.h"
#include "models/networks/text_decoder.h"

namespace mulciber {

class Weights;

/// Names, shapes and source names of every weight: the vision tower's, then the decoder's.
WeightTable image_text_reader_weight_table(const ImageTextReaderConfig& config,
                                           const Checkpoint& checkpoint);
/// Builds the decoder. weights: of that table.
TextDecoder image_text_reader_decoder(const ImageTextReaderConfig& config, const Weights& weights,
                                      DataType activations);

}  // namespace mulciber
