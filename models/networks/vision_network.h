// Vision transformers and the text encoders trained with them.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "images/processor.h"
#include "layers/attention.h"
#include "layers/embedding.h"
#include "layers/transformer.h"
#include "models/core/network_weights.h"
#include "models/families/vision_config.h"

namespace mulciber {

/// Height and width of images, in pixels or cells.
struct ImageSize {
  uint32_t height = 0, width = 0;
  bool operator==(const ImageSize&) const = default;
};

/// Resizes position embeddings from one grid to another, row-major (cells, columns), as
/// transformers does: bicubically with a = -0.75, edges repeated, without antialiasing.
std::vector<float> resized_positions(std::span<const float> positions, uint32_t columns,
                                     ImageSize grid, ImageSize to);

/// Columns for a token of all activations of a tower that are alive at one time.
uint64_t live_columns(const VisionTower& tower);

/// The embedding of an image: a linear map of each patch, learned tokens before them, positions.
struct PatchEmbedding {
  Tensor patches;                    // (D, channels * patch * patch)
  std::optional<Tensor> bias;        // (D) f32
  std::vector<Tensor> first_tokens;  // (D) f32 each
  Tensor positions;                  // (tokens, D) f32
  std::optional<Norm> norm;
};

/// Attention of a learned query to the hidden states, then a feed-forward network: Zhai et al.
/// 2022, arXiv:2106.04560.
struct AttentionPooling {
  Tensor probe;  // (1, D)
  CrossAttention attention;
  Norm norm;
  FeedForward feed_forward;
};

/// A vision transformer. Source: Dosovitskiy et al. 2021, arXiv:2010.11929.
class VisionTowerNetwork {
 public:
  /// Asks for a pooler if the checkpoint has it.
  VisionTowerNetwork(const VisionConfig& config, NetworkWeights& weights, DataType activations);

  /// Initial hidden states of images of a size, before pixels are added, (tokens, D) row-major: the
  /// value and position embedding of each learned token; the position embedding of each patch and
  /// the bias of the patch projection. Reads weights back from the device.
  std::vector<float> first_states(Device& device, ImageSize size) const;
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

  VisionTower tower_;
  VisionHead head_;
  DataType activations_;
  PatchEmbedding embedding_;
  Encoder encoder_;
  std::optional<Norm> pooled_norm_;
  std::optional<AttentionPooling> attention_pooling_;
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
  /// projection: see VisionConfig.
  TextTowerNetwork(const TextTower& tower, uint32_t projection, NetworkWeights& weights,
                   DataType activations);

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

/// An image encoder, and the text encoder if one was trained with it.
struct VisionNetwork {
  VisionNetwork(const VisionConfig& config, NetworkWeights& weights, DataType activations);

  VisionTowerNetwork tower;
  std::optional<TextTowerNetwork> texts;
  /// The factor of a cosine in its logit, and the bias that is then added.
  double logit_scale = 1, logit_bias = 0;
};

}  // namespace mulciber
