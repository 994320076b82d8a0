// A model that encodes images, on a device.
#pragma once

#include <list>
#include <memory>
#include <optional>

#include "models/core/architecture.h"
#include "models/families/vision_family.h"
#include "models/vision/seeing_model.h"

namespace mulciber {

/// Takes inputs and gives outputs by the names of Hugging Face transformers, and runs batches of
/// images and texts.
class VisionModel : public Model, public SeeingModel {
 public:
  /// Throws ModelError when configuration and tensors disagree, DeviceError when the weights do not
  /// fit.
  VisionModel(Device& device, const Checkpoint& checkpoint, const VisionConfig& config,
              const ModelOptions& options);
  ~VisionModel() override;

  std::string family() const override { return family_; }
  bool half_precision() const override { return half_precision_; }
  Extents extents() const override;
  uint64_t weight_bytes() const override { return weights_.bytes(); }
  NamedArrays forward(const NamedArrays& inputs, std::span<const std::string> wanted) override;
  SeeingModel* sees() override { return this; }

  const VisionConfig& config() const override { return config_; }
  uint32_t batch_limit(ImageSize size) override;
  EncoderResult see(const ImageRequest& request) override;
  EncoderResult read(std::span<const std::vector<uint32_t>> texts) override;
  double logit_scale() const override { return network_.logit_scale; }
  double logit_bias() const override { return network_.logit_bias; }
  std::vector<float> attention_maps(const ImageRequest& request) override;
  std::unique_ptr<ImagePass> start(const ImageStart& start) override;
  void trim() override;

 private:
  struct ImageShape;
  struct ImagePrograms;
  struct TextPrograms;

  void check(const ImageRequest& request) const;
  void check_size(ImageSize size) const;
  /// Bytes of an image's attention maps. Throws ModelError where they are too many.
  uint64_t map_bytes(ImageSize size) const;
  uint64_t tokens_of(ImageSize size) const;
  uint64_t batch_bytes(uint32_t rows, ImageSize size) const;
  /// The first states of images of a size, on the device. They stay while the result is shared.
  std::shared_ptr<const Tensor> start_of(ImageSize size);
  ImagePrograms& programs(const ImageShape& shape);
  TextPrograms& text_programs(uint32_t rows, uint32_t length);
  void forward_images(const NamedArrays& inputs, std::span<const std::string> wanted,
                      NamedArrays& results);
  void forward_texts(const NamedArrays& inputs, NamedArrays& results);

  /// The first states of images of a size, and their buffer.
  struct Start {
    ImageSize size;
    Buffer buffer;
    Tensor tensor;
  };

  Device& device_;
  std::string family_;
  VisionConfig config_;
  bool half_precision_;
  DataType activations_;
  uint64_t memory_limit_;
  Weights weights_;
  VisionNetwork network_;
  std::list<std::shared_ptr<const Start>> starts_;
  std::list<std::unique_ptr<ImagePrograms>> programs_;  // most recently used first
  std::list<std::unique_ptr<TextPrograms>> text_programs_;
};

Extents extents_of(const VisionConfig& config);
std::unique_ptr<const Architecture> read_vision(const Checkpoint& checkpoint,
                                                const VisionFamily& family);

}  // namespace mulciber
