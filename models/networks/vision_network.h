// Vision transformers and the text encoders trained with them: weight table and networks.
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

/// Names, shapes and source names of every weight of a configuration. A pooler is in the table if
/// the checkpoint has it.
WeightTable vision_weight_table(const VisionConfig& config, const Checkpoint& checkpoint);

/// Height and width of images, in pixels or cells.
struct ImageSize {
  uint32_t height = 0, width = 0;
  bool operator==(const ImageSize&) const = default;
};

/// Resizes position embeddings from one grid to another, row-major (cells, columns), as
/// transformers does: bicubically with a = -0.75, edges repeated, without antialiasing.
std::vector<float> resized_positions(std::span<const float> positions, uint32_t columns,
                                     ImageSize grid, ImageSize to);

/// Initial hidden states of images of a size, before pixels are added, (tokens, D) row-major: the
/// value and position embedding of each learned token; the position embedding of each patch and the
/// bias of the patch projection.
std::vector<float> first_states(Device& device, const VisionTower& tower, const Weights& weights,
                                ImageSize size);

/// Columns for a token of all activations of a tower that are alive at one time.
uint64_t live_columns(const VisionTower& tower);

/// A vision transformer. Source: Dosovitskiy et al. 2021, arXiv:2010.11929.
class VisionTowerNetwork {
 public:
  VisionTowerNetwork(const VisionConfig& config, const Weights& weights, DataType activations);

  /// Adds the network. pixels: input of unfold_patches(); first: result of first_states(). Returns
  /// hidden states, (images, tokens, D).
  Tensor states(ProgramBuilder& builder, const Tensor& pixels, const Tensor& first,
                const ImageNormalization& normalization, Trace* trace = nullptr) const;
  // The next functions read hidden states. Their results are f32.
  /// Pooled embedding of a checkpoint without a head: (images, D).
  Tensor pooled(ProgramBuilder& builder, const Tensor& states) const;
  /// Mean of the patches: (images, D).
  Tensor mean(ProgramBuilder& builder, const Tensor& states) const;
  /// Output of the pooler, (images, D); needs has_pooler().
  Tensor pooler_output(ProgramBuilder& builder, const Tensor& states) const;
  /// Projection to the shared embedding space, (images, columns), not normalized.
  Tensor projected(ProgramBuilder& builder, const Tensor& states) const;
  /// Logits, (images, labels). For kClassAndTeacher the sum of both heads, twice the model's
  /// logits.
  Tensor logits(ProgramBuilder& builder, const Tensor& states) const;

  bool has_pooler() const { return pooler_.has_value(); }
  /// Columns for a token of all activations that are alive at one time, and of the widest
  /// activation.
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

  VisionTower tower_;
  VisionHead head_;
  DataType activations_;
  Tensor patches_;  // (D, channels * patch * patch)
  std::optional<Norm> embedding_norm_, pooled_norm_;
  Encoder encoder_;
  std::optional<AttentionHead> attention_head_;
  std::optional<Linear> pooler_, projection_, classifier_, teacher_;
};

/// Control words that a program of the text encoder reads.
struct TextTowerControl {
  uint32_t rows = 1, length = 1;
  ControlArray<uint32_t> tokens;  // (rows, length) ids
  ControlArray<uint32_t> ends;    // (rows): row * length + index of the token to pool
  uint32_t words = 0;             // number of control words
};
TextTowerControl plan_text_control(uint32_t rows, uint32_t length);

class TextTowerNetwork {
 public:
  TextTowerNetwork(const TextTower& tower, const Weights& weights, DataType activations);

  /// Adds the network. Returns hidden states, (rows, length, D).
  Tensor states(ProgramBuilder& builder, const Tensor& control,
                const TextTowerControl& layout) const;
  /// Pools hidden states. Returns (rows, D) f32.
  Tensor pooled(ProgramBuilder& builder, const Tensor& states, const Tensor& control,
                const TextTowerControl& layout) const;
  /// Projects pooled states to the shared embedding space. Returns (rows, columns) f32, not
  /// normalized.
  Tensor projected(ProgramBuilder& builder, const Tensor& pooled) const;
  /// Index of the token to pool. ids: at least one.
  uint32_t end_of(std::span<const uint32_t> ids) const;

 private:
  TextTower tower_;
  DataType activations_;
  TokenEmbedding embedding_;
  Encoder encoder_;
  std::optional<Linear> head_, projection_;
};

}  // namespace mulciber
