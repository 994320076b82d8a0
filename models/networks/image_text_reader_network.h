// Networks that read text in images: a vision transformer and a text decoder.
#pragma once

#include "models/core/network_weights.h"
#include "models/families/image_text_reader_config.h"
#include "models/networks/text_decoder.h"
#include "models/networks/vision_network.h"

namespace mulciber {

struct ImageTextReaderNetwork {
  ImageTextReaderNetwork(const ImageTextReaderConfig& config, NetworkWeights& weights,
                         DataType activations);

  VisionTowerNetwork tower;
  TextDecoder decoder;
};

}  // namespace mulciber
