// The interface of models that turn images into vectors, label them and match them with texts.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "models/core/encoding_model.h"
#include "models/networks/vision_network.h"

namespace mulciber {

enum class ImageOutput {
  kPooled,     // the vector of the whole image
  kMean,       // the mean of the states of its patches
  kProjected,  // the vector in the space shared with texts
  kLogits,     // a logit for each label
  kStates,     // the state of each token after the last layer
};

struct ImageRequest {
  /// A batch of images: for each its pixels, line by line, one word each whose lowest byte is
  /// channel 0.
  std::span<const std::vector<uint32_t>> pixels;
  ImageSize size;  // one size for all images
  ImageNormalization normalization;
  ImageOutput output = ImageOutput::kPooled;
  bool normalized = false;  // vectors of length 1
};

class ImagePass;
struct ImageStart;

class SeeingModel {
 public:
  virtual ~SeeingModel() = default;

  virtual const VisionConfig& config() const = 0;
  /// Most images of that size that fit one batch, by the device's storage range and by its memory.
  virtual uint32_t batch_limit(ImageSize size) = 0;
  /// Throws ModelError when the model does not take images of that size or has no such output, or
  /// when its results are not finite.
  virtual EncoderResult see(const ImageRequest& request) = 0;
  /// The vectors of texts in the space shared with images, of length 1. Throws ModelError when the
  /// model has no text tower, or a text is empty or too long.
  virtual EncoderResult read(std::span<const std::vector<uint32_t>> texts) = 0;
  /// The factor of a cosine in its logit, and the bias that is then added. Only for models that
  /// match images with texts.
  virtual double logit_scale() const = 0;
  virtual double logit_bias() const = 0;
  /// The attention maps of one image: (layers, heads, tokens, tokens) row-major.
  virtual std::vector<float> attention_maps(const ImageRequest& request) = 0;
  /// Starts one image, to be run in slices. Throws as see(), except for numbers that are not
  /// finite, and DeviceError where it does not fit the device's memory.
  virtual std::unique_ptr<ImagePass> start(const ImageStart& start) = 0;
  /// Frees programs and activations that are kept for later calls.
  virtual void trim() = 0;
};

}  // namespace mulciber
