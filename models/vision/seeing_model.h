// What turning pictures into vectors, labelling them and matching them with texts needs of a model.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "models/core/encoding_model.h"
#include "models/networks/vision_network.h"

namespace mulciber {

enum class PictureOutput {
  kPooled,     // what stands for the whole picture
  kMean,       // the mean of the states of its patches
  kProjected,  // in the space that it shares with texts
  kLogits,     // of each label
};

struct PictureRequest {
  /// Of one batch: of each picture its pixels, line by line, a word each whose lowest byte is
  /// channel 0.
  std::span<const std::vector<uint32_t>> pixels;
  PictureSize size;  // of all of them
  PictureNormalization normalization;
  PictureOutput output = PictureOutput::kPooled;
  bool normalized = false;  // vectors of length 1
};

class PicturePass;
struct PictureStart;

class SeeingModel {
 public:
  virtual ~SeeingModel() = default;

  virtual const VisionConfig& config() const = 0;
  /// Most pictures of that size that fit one batch: by the device's storage range and by its
  /// memory.
  virtual uint32_t batch_limit(PictureSize size) = 0;
  /// Throws ModelError when the model does not take pictures of that size or has no such output, or
  /// when what it computes is not finite.
  virtual EncoderResult see(const PictureRequest& request) = 0;
  /// The vectors of texts in the space that they share with pictures, of length 1. Throws
  /// ModelError when the model has no tower of texts, or a text is empty or too long.
  virtual EncoderResult read(std::span<const std::vector<uint32_t>> texts) = 0;
  /// What a cosine is multiplied by to be a logit, and what is added then. Of models that match.
  virtual double logit_scale() const = 0;
  virtual double logit_bias() const = 0;
  /// The attention maps of one picture: (layers, heads, tokens, tokens) row-major.
  virtual std::vector<float> attention_maps(const PictureRequest& request) = 0;
  /// One picture, to be run in slices. Throws as see(), but for numbers that are not finite, and
  /// DeviceError where it does not fit the device's memory.
  virtual std::unique_ptr<PicturePass> start(const PictureStart& start) = 0;
};

}  // namespace mulciber
