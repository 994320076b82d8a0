// transformers' VisionEncoderDecoderModel: a text decoder attends to the hidden states of a vision
// transformer. Source: TrOCR, Li et al. 2021, arXiv:2109.10282.
#pragma once

#include <cstdint>

#include "models/families/vision_config.h"

namespace mulciber {

struct ImageTextReaderConfig {
  VisionConfig vision;
  // The decoder, a post-norm Transformer.
  uint32_t width = 0, heads = 0, hidden = 0, layers = 0;
  uint32_t vocabulary = 0;
  uint32_t context = 0;  // most tokens of the decoder
  Activation activation = Activation::kGelu;
  bool scale_embedding = false, embedding_norm = true;
  uint32_t start = 0;  // the id of the start token
  GenerationConfig generation;
};

/// Reads the configuration. Throws ModelError naming file and key.
ImageTextReaderConfig read_image_text_reader_config(const ConfigReader& config,
                                                    const ConfigReader* generation);

}  // namespace mulciber
