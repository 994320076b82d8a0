// One picture through a vision transformer, in slices: its vector, states and maps stay on the
// device.
#pragma once

#include <optional>
#include <vector>

#include "models/vision/seeing_model.h"
#include "runtime/host_copy.h"
#include "runtime/slices.h"

namespace mulciber {

/// What a PicturePass reads, and makes of it.
struct PictureStart {
  std::vector<uint32_t> pixels;  // as PictureRequest has them
  /// In place of them: as many words, read by the first slice.
  std::optional<BufferView> from;
  PictureSize size;
  PictureNormalization normalization;
  PictureOutput output = PictureOutput::kPooled;
  bool normalized = false;
  bool attention = false;  // maps are kept
};

/// Adds what an output is made of states by: f32.
Tensor picture_output(ProgramBuilder& builder, const PictureNetwork& network, PictureOutput output,
                      const Tensor& states);

/// Made by SeeingModel::start(). Must not outlive the network, nor `first`'s memory.
class PicturePass : public StageSource {
 public:
  /// first: what PictureNetwork::states() takes.
  PicturePass(Device& device, const PictureNetwork& network, const PictureTower& tower,
              const Tensor& first, const PictureStart& start);

  std::optional<Stage> next() override;
  void ended(uint64_t stages) override { ended_ = stages; }
  bool done() const override { return ended_ == stages(); }

  /// Of the whole pass.
  uint64_t stages() const { return from_ ? 2 : 1; }
  uint32_t tokens() const { return static_cast<uint32_t>(states_.shape.rows()); }
  /// Of patches, and how many tokens stand before them.
  PictureSize grid() const { return grid_; }
  uint32_t first_tokens() const { return first_tokens_; }
  uint32_t layers() const { return static_cast<uint32_t>(maps_.size()); }
  uint32_t heads() const { return heads_; }
  /// One row.
  PaddedRows vector() const;
  /// A row for each token: those after the last layer.
  PaddedRows states() const;
  /// What a token attends to among the patches, as they lie.
  PaddedRows map(uint32_t layer, uint32_t head, uint32_t token) const;
  /// The vector on the host, of a pass that is done.
  std::vector<float> values() const;

 private:
  PictureSize grid_;
  uint32_t first_tokens_, heads_;
  std::optional<BufferView> from_;  // the host's
  std::vector<uint32_t> words_;
  Buffer pixels_, copy_;
  Tensor vector_, states_;
  std::vector<Tensor> maps_;  // per layer: (heads, tokens, tokens)
  std::optional<Program> program_;
  uint64_t given_ = 0, ended_ = 0;
};

}  // namespace mulciber
