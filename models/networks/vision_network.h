// Vision Transformers and the towers of texts beside them: weights, and graphs of them.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "images/processor.h"
#include "layers/attention.h"
#include "layers/embedding.h"
#include "layers/transformer.h"
#include "models/core/device_weights.h"
#include "models/families/vision_config.h"

namespace mulciber {

/// Names, shapes and source names of every weight that a configuration asks for. A pooler is in the
/// table when the checkpoint has it.
WeightTable vision_weight_table(const VisionConfig& config, const Checkpoint& checkpoint);

/// Pixels in the height and width of pictures.
struct PictureSize {
  uint32_t height = 0, width = 0;
  bool operator==(const PictureSize&) const = default;
};

/// Positions of a (down, across) grid, row-major (cells, columns), resized to another one as
/// transformers does: bicubically with a = -0.75, edges repeated, without antialiasing.
std::vector<float> resized_positions(std::span<const float> positions, uint32_t columns,
                                     PictureSize grid, PictureSize to);

/// What pictures of a size begin with before their pixels, (tokens, D) row-major: of every learned
/// token its value and its position, of every patch its position and the bias of its product.
std::vector<float> first_states(Device& device, const PictureTower& tower, const Weights& weights,
                                PictureSize size);

/// Columns of a tower's activations that are alive at one time, for a token.
uint64_t live_columns(const PictureTower& tower);

/// Source: Dosovitskiy et al. 2021, arXiv:2010.11929.
class PictureNetwork {
 public:
  PictureNetwork(const VisionConfig& config, const Weights& weights, DataType activations);

  /// pixels: as unfold_patches() takes them; first: what first_states() gives. Result: (pictures,
  /// tokens, D).
  Tensor states(ProgramBuilder& builder, const Tensor& pixels, const Tensor& first,
                const PictureNormalization& normalization, Trace* trace = nullptr) const;
  // Of states, all f32:
  /// (pictures, D): what a checkpoint without a head gives of the whole picture.
  Tensor pooled(ProgramBuilder& builder, const Tensor& states) const;
  /// (pictures, D): the mean of the patches.
  Tensor mean(ProgramBuilder& builder, const Tensor& states) const;
  /// (pictures, D). Where has_pooler().
  Tensor pooler_output(ProgramBuilder& builder, const Tensor& states) const;
  /// (pictures, columns of the shared space), not yet of length 1.
  Tensor projected(ProgramBuilder& builder, const Tensor& states) const;
  /// (pictures, labels). Of kClassAndTeacher twice the logits.
  Tensor logits(ProgramBuilder& builder, const Tensor& states) const;

  bool has_pooler() const { return pooler_.has_value(); }
  /// Columns of the activations that are alive at one time, and of the widest, for a token.
  uint64_t live_columns() const { return mulciber::live_columns(tower_); }
  uint64_t widest_columns() const;

 private:
  Tensor attention_pooled(ProgramBuilder& builder, const Tensor& states) const;

  struct AttentionHead {
    Tensor probe;  // (1, D)
    CrossAttention attention;
    Norm norm;
    FeedForward feed_forward;
  };

  PictureTower tower_;
  PictureHead head_;
  DataType activations_;
  Tensor patches_;  // (D, channels * patch * patch)
  std::optional<Norm> embedding_norm_, pooled_norm_;
  Encoder encoder_;
  std::optional<AttentionHead> attention_head_;
  std::optional<Linear> pooler_, projection_, classifier_, teacher_;
};

/// What a program of the tower of texts reads in control.
struct TextTowerControl {
  uint32_t rows = 1, length = 1;
  ControlArray<uint32_t> tokens;  // (rows, length) ids
  ControlArray<uint32_t> ends;    // (rows): row * length + the token whose state is the text's
  uint32_t words = 0;             // of control
};
TextTowerControl plan_text_control(uint32_t rows, uint32_t length);

class TextTowerNetwork {
 public:
  TextTowerNetwork(const TextTower& tower, const Weights& weights, DataType activations);

  /// Result: (rows, length, D).
  Tensor states(ProgramBuilder& builder, const Tensor& control,
                const TextTowerControl& layout) const;
  /// Of states, f32: (rows, D).
  Tensor pooled(ProgramBuilder& builder, const Tensor& states, const Tensor& control,
                const TextTowerControl& layout) const;
  /// Of states, f32: (rows, columns of the shared space), not yet of length 1.
  Tensor projected(ProgramBuilder& builder, const Tensor& pooled) const;
  /// Which token's state is the text's. ids: at least one.
  uint32_t end_of(std::span<const uint32_t> ids) const;

 private:
  TextTower tower_;
  DataType activations_;
  TokenEmbedding embedding_;
  Encoder encoder_;
  std::optional<Linear> head_, projection_;
};

}  // namespace mulciber
