// Implementation of ImageEncoder and its tasks.
#pragma once

#include "models/vision/image_runner.h"

namespace mulciber {

struct ImageEncoder::Impl : ImageRunner {
  PictureOutput output(PicturePoolingChoice pooling) const {
    if (pooling == PicturePoolingChoice::kMean) return PictureOutput::kMean;
    return config().texts ? PictureOutput::kProjected : PictureOutput::kPooled;
  }
};

}  // namespace mulciber
