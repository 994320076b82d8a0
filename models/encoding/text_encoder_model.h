// An encoder-only model on a device.
#pragma once

#include <list>
#include <memory>

#include "models/core/architecture.h"
#include "models/core/encoding_model.h"
#include "models/families/encoder_family.h"
#include "models/networks/text_encoder_network.h"

namespace mulciber {

/// An encoder-only model: forward passes with the names of Hugging Face transformers, and batches
/// of texts.
class TextEncoderModel : public Model, public EncodingModel {
 public:
  /// Loads the model. Throws ModelError when configuration and tensors disagree, DeviceError when
  /// the weights do not fit.
  TextEncoderModel(Device& device, const Checkpoint& checkpoint, const EncoderConfig& config,
                   const ModelOptions& options);
  ~TextEncoderModel() override;

  std::string family() const override { return family_; }
  bool half_precision() const override { return half_precision_; }
  Extents extents() const override;
  uint64_t weight_bytes() const override { return weights_.bytes(); }
  NamedArrays forward(const NamedArrays& inputs, std::span<const std::string> wanted) override;
  EncodingModel* encodes_text() override { return this; }

  const EncoderConfig& config() const override { return config_; }
  bool has_pooler() const override { return network_.has_pooler(); }
  void add_dense(const DenseModule& module) override;
  uint32_t batch_limit(uint32_t length) override;
  EncoderResult encode(const EncoderRequest& request) override;
  std::unique_ptr<EncodingPass> start(const EncodingStart& start) override;
  std::vector<PipelineKey> pipelines(uint32_t tokens, EncoderOutput output,
                                     bool normalized) const override;
  void trim() override;

 private:
  struct Programs;
  struct Shape;

  void check(const EncoderRequest& request) const;
  uint32_t rounded_length(size_t tokens) const;
  Shape shape_for(const EncoderRequest& request) const;
  uint64_t batch_bytes(const Shape& shape) const;
  Programs& programs(const Shape& shape);
  [[noreturn]] void refuse_result(const EncoderInput& input);

  Device& device_;
  std::string family_;
  EncoderConfig config_;
  bool half_precision_;
  uint64_t memory_limit_;
  Weights weights_;
  TextEncoderNetwork network_;
  size_t dense_modules_ = 0;
  std::list<std::unique_ptr<Programs>> programs_;  // most recently used first
};

Extents extents_of(const EncoderConfig& config);
std::unique_ptr<const Architecture> read_text_encoder(const Checkpoint& checkpoint,
                                                      const EncoderFamily& family);

}  // namespace mulciber
