// The implementation that ImageEncoder, ImageClassifier and ImageTextMatcher share: it runs images
// in batches.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "images/processor.h"
#include "models/core/capability.h"
#include "models/families/open_model.h"
#include "models/vision/seeing_model.h"
#include "mulciber/image_encoder.h"

namespace mulciber {

struct ImageRunner {
  std::shared_ptr<Device> device;
  std::shared_ptr<Model> model;
  SeeingModel* seeing = nullptr;  // the model, to see images
  ImageProcessor processor;
  ImageStatistics statistics;

  /// Throws ModelError, before anything is loaded, where the checkpoint lacks the capability.
  void load(const OpenModel& opened, const LoadOptions& options, Capability capability);
  const VisionConfig& config() const { return seeing->config(); }

  /// Begins the statistics of a call.
  void begin(size_t images);
  /// Runs all images in batches of one size; `take` gets the values of each image. Returns early
  /// where the call is cancelled.
  void run(std::span<const Image> images, ImageOutput output, bool normalized,
           const ImageBatchOptions& options,
           const std::function<void(size_t index, std::vector<float> values)>& take);
  ImageAttention attention(const Image& image);
  /// The image as the model reads it.
  Image prepared(const Image& image) const;
  ImageRequest request_for(ImageSize size) const;
};

}  // namespace mulciber
