// One image through a vision transformer, in slices: its vector, states and maps stay on the
// device.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "models/vision/seeing_model.h"
#include "runtime/application_copy.h"
#include "runtime/slices.h"

namespace mulciber {

/// The inputs of an ImagePass, and the outputs that it keeps.
struct ImageStart {
  std::vector<uint32_t> pixels;  // see ImageRequest
  /// Replaces `pixels`: a buffer of as many words, which the first slice reads.
  std::optional<BufferView> from;
  ImageSize size;
  ImageNormalization normalization;
  ImageOutput output = ImageOutput::kPooled;
  bool normalized = false;
  bool attention = false;  // maps are kept
};

/// Adds the nodes that make an output from states; its type is f32.
Tensor image_output(ProgramBuilder& builder, const VisionTowerNetwork& network, ImageOutput output,
                    const Tensor& states);

/// Made by SeeingModel::start(). Must not outlive the network.
class ImagePass : public StageSource {
 public:
  /// first: the first states, which VisionTowerNetwork::states() takes.
  ImagePass(Device& device, const VisionTowerNetwork& network, const VisionTower& tower,
            std::shared_ptr<const Tensor> first, const ImageStart& start);

  bool next(Stage& stage) override;
  void ended(uint64_t stages) override { ended_ = stages; }
  bool done() const override { return ended_ == stages(); }

  /// Stages of the whole pass.
  uint64_t stages() const { return from_ ? 2 : 1; }
  uint32_t tokens() const { return static_cast<uint32_t>(states_.shape.rows()); }
  /// The grid of patches, and how many tokens stand before them.
  ImageSize grid() const { return grid_; }
  uint32_t first_tokens() const { return first_tokens_; }
  uint32_t layers() const { return static_cast<uint32_t>(maps_.size()); }
  uint32_t heads() const { return heads_; }
  /// The vector: one row.
  PaddedRows vector() const;
  /// The states after the last layer: a row for each token.
  PaddedRows states() const;
  /// The probabilities with which a token attends to the patches, laid out as the patches lie.
  PaddedRows map(uint32_t layer, uint32_t head, uint32_t token) const;
  /// The vector of a pass that is done, in CPU memory.
  std::vector<float> values() const;

 private:
  ImageSize grid_;
  uint32_t first_tokens_, heads_;
  std::shared_ptr<const Tensor> first_;
  std::optional<BufferView> from_;  // the caller's buffer
  std::vector<uint32_t> words_;
  Buffer pixels_, copy_;
  Tensor vector_, states_;
  std::vector<Tensor> maps_;  // per layer: (heads, tokens, tokens)
  std::optional<Program> program_;
  uint64_t given_ = 0, ended_ = 0;
};

}  // namespace mulciber
