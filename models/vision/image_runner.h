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

  /// Throws ModelError where the checkpoint lacks the capability.
  static void require(const OpenModel& opened, Capability capability);
  /// Throws as require(), before anything is loaded. weights: ModelOptions::weights.
  void load(const OpenModel& opened, const LoadOptions& options, Capability capability,
            std::shared_ptr<WeightsLoad> weights = {});
  const VisionConfig& config() const { return seeing->config(); }

  /// Begins the statistics of a call.
  void begin(size_t images);
  /// Gets the index and the values of an image, and its size as the model reads it.
  using Take = std::function<void(size_t index, std::vector<float> values, ImageSize size)>;
  /// Runs all images in batches of one size; `take` is called for each image. Returns early where
  /// the call is cancelled.
  void run(std::span<const Image> images, ImageOutput output, bool normalized,
           const ImageBatchOptions& options, const Take& take);
  ImageAttention attention(const Image& image);
  ImageExtents extents() const;
  /// Frees programs and activations that are kept for later images. Returns what trim_memory()
  /// does.
  uint64_t trim();
  /// The image as the model reads it.
  Image prepared(const Image& image) const;
  ImageRequest request_for(ImageSize size) const;
};

}  // namespace mulciber
