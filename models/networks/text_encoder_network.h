// The encoder-only Transformer: its weights, and what stands behind them as a graph.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "layers/embedding.h"
#include "layers/transformer.h"
#include "models/core/device_weights.h"
#include "models/families/encoder_config.h"

namespace mulciber {

/// Names, shapes and source names of every weight that a configuration asks for. The pooler of the
/// bare model is in the table when the checkpoint has it.
WeightTable text_encoder_weight_table(const EncoderConfig& config, const Checkpoint& checkpoint);

/// A weight that is computed and not read: the angles of a rotary embedding.
struct ComputedAngles {
  std::string name;
  Shape shape;
  RopeConfig rope;
};
std::vector<ComputedAngles> computed_angles(const EncoderConfig& config);

/// What a program of an encoder reads in control.
struct TextEncoderControl {
  uint32_t rows = 1, length = 1;
  uint32_t packed = 0;             // tokens, of texts one after the other; 0: a rectangle of texts
  ControlArray<uint32_t> tokens;   // (rows, length) ids, or (packed)
  ControlArray<uint32_t> lengths;  // (rows)
  std::optional<ControlArray<uint32_t>> types, positions;  // as tokens
  std::optional<Packing> packing;                          // without its tensor
  ControlArray<uint32_t> first_position;                   // one, 0
  std::optional<ControlArray<float>> relative_bias;
  std::optional<ControlArray<uint32_t>> distance_rows;  // of disentangled attention
  uint32_t words = 0;                                   // of control
};

/// Source: Devlin et al. 2019, arXiv:1810.04805, and what came after it.
struct TextEncoderNetwork {
  /// weights: of the table and the computed ones; relative_bias: as t5_bias() makes it.
  TextEncoderNetwork(const EncoderConfig& config, const Weights& weights,
                     std::vector<float> relative_bias, DataType activations);

  /// packed: as TextEncoderControl::packed.
  TextEncoderControl plan_control(uint32_t rows, uint32_t length, uint32_t packed = 0) const;
  /// Everything but the texts' ids and types, for these numbers of tokens.
  ControlWords initial_words(const TextEncoderControl& control) const;
  /// ids: of a row, `length` of them. Writes the row's positions as well.
  void set_row(ControlWords& words, const TextEncoderControl& control, uint32_t row,
               std::span<const uint32_t> ids, std::span<const uint32_t> types,
               uint32_t tokens) const;
  /// The same of texts that are packed: first: tokens of all rows before this one.
  void set_packed_row(ControlWords& words, const TextEncoderControl& control, uint32_t row,
                      uint32_t first, std::span<const uint32_t> ids,
                      std::span<const uint32_t> types) const;

  /// Result: (rows, length, D). words: in place of the table of words, which ids then count the
  /// rows of.
  Tensor states(ProgramBuilder& builder, const Tensor& control, const TextEncoderControl& layout,
                Trace* trace = nullptr, const Tensor* words = nullptr) const;
  /// Of states, f32: (rows, D).
  Tensor pool(ProgramBuilder& builder, const Tensor& states, EncoderPooling pooling,
              const Tensor& control, const TextEncoderControl& layout) const;
  /// What the modules of add_dense() make of pooled states, one after the other.
  Tensor dense(ProgramBuilder& builder, const Tensor& pooled) const;
  void add_dense(Linear linear, Activation activation) {
    dense_.emplace_back(std::move(linear), activation);
  }
  /// Of states, f32: (rows, D). Where has_pooler().
  Tensor pooler_output(ProgramBuilder& builder, const Tensor& states) const;
  /// Of states, f32: (rows, labels). Of kClassify.
  Tensor logits(ProgramBuilder& builder, const Tensor& states, const Tensor& control,
                const TextEncoderControl& layout) const;
  /// Of states, f32: (rows, length, 2), start and end. Of kAnswer.
  Tensor spans(ProgramBuilder& builder, const Tensor& states) const;

  /// Of the table of words.
  uint32_t embedding_columns() const {
    return static_cast<uint32_t>(embedding_.words.shape.columns());
  }
  /// An id that does not count as padding.
  uint32_t no_padding() const { return config_.pad == 0 ? 1 : 0; }
  bool has_pooler() const { return pooler_.has_value(); }
  /// Columns of the activations that are alive at one time, for a token, and of what attention
  /// reads and makes of it; and of the widest of all.
  uint64_t live_columns() const;
  uint64_t attention_columns() const;
  uint64_t widest_columns() const;
  /// Bytes of scores by distance, which a row has for each pair of positions.
  uint64_t pair_bytes(uint32_t length) const {
    return config_.disentangled ? sizeof(float) * uint64_t{config_.heads} * length * length : 0;
  }
  size_t layers() const { return encoder_.layers.size(); }
  bool has_final_norm() const { return encoder_.final_norm.has_value(); }
  DataType activations() const { return activations_; }

 private:
  void set_tokens(ControlWords& words, const TextEncoderControl& control, uint64_t first,
                  std::span<const uint32_t> ids, std::span<const uint32_t> types) const;

  struct Head {
    std::optional<Linear> dense;
    std::optional<Norm> norm;
    Linear output;
  };

  EncoderConfig config_;
  DataType activations_;
  SegmentEmbedding embedding_;
  Encoder encoder_;
  std::optional<Linear> pooler_, spans_;
  std::optional<Head> head_;
  std::vector<float> relative_bias_;
  std::optional<Tensor> distances_;  // of disentangled attention, (2 * span, D)
  std::optional<Norm> distances_norm_;
  std::vector<std::pair<Linear, Activation>> dense_;
};

}  // namespace mulciber
