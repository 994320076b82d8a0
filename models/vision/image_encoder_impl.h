// Implementation of ImageEncoder and its tasks.
#pragma once

#include "models/vision/image_runner.h"

namespace mulciber {

struct ImageEncoder::Impl : ImageRunner {
  ImageOutput output(ImagePoolingChoice pooling) const {
    if (pooling == ImagePoolingChoice::kMean) return ImageOutput::kMean;
    return config().texts ? ImageOutput::kProjected : ImageOutput::kPooled;
  }
};

}  // namespace mulciber
