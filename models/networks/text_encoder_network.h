// The encoder-only Transformer.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "layers/embedding.h"
#include "layers/transformer.h"
#include "models/core/network_weights.h"
#include "models/families/encoder_config.h"

namespace mulciber {

/// Control words that a program of an encoder reads.
struct TextEncoderControl {
  uint32_t rows = 1, length = 1;
  uint32_t packed = 0;             // tokens of a packed batch; 0: texts are padded
  ControlArray<uint32_t> tokens;   // (rows, length) ids, or (packed)
  ControlArray<uint32_t> lengths;  // (rows)
  std::optional<ControlArray<uint32_t>> types, positions;  // shaped like tokens
  std::optional<Packing> packing;                          // its tensor is not set
  ControlArray<uint32_t> first_position;                   // one word, 0
  std::optional<ControlArray<float>> relative_bias;
  std::optional<ControlArray<uint32_t>> distance_rows;  // for disentangled attention
  uint32_t words = 0;                                   // number of control words
};

/// An encoder-only Transformer. Source: Devlin et al. 2019, arXiv:1810.04805, and its successors.
struct TextEncoderNetwork {
  /// Asks for a pooler if the checkpoint of a bare model has it.
  TextEncoderNetwork(const EncoderConfig& config, NetworkWeights& weights, DataType activations);

  /// packed: see TextEncoderControl::packed.
  TextEncoderControl plan_control(uint32_t rows, uint32_t length, uint32_t packed = 0) const;
  /// Control words without the texts' ids and types.
  ControlWords initial_words(const TextEncoderControl& control) const;
  /// Writes a row's ids, `length` of them, types and positions.
  void set_row(ControlWords& words, const TextEncoderControl& control, uint32_t row,
               std::span<const uint32_t> ids, std::span<const uint32_t> types,
               uint32_t tokens) const;
  /// Writes a row of a packed batch. first: tokens of all rows before this one.
  void set_packed_row(ControlWords& words, const TextEncoderControl& control, uint32_t row,
                      uint32_t first, std::span<const uint32_t> ids,
                      std::span<const uint32_t> types) const;

  /// Adds the network. Returns hidden states, (rows, length, D). words: replaces the token
  /// embedding table; ids are then its row indices.
  Tensor states(ProgramBuilder& builder, const Tensor& control, const TextEncoderControl& layout,
                Trace* trace = nullptr, const Tensor* words = nullptr) const;
  /// Pools hidden states. Returns (rows, D) f32.
  Tensor pool(ProgramBuilder& builder, const Tensor& states, EncoderPooling pooling,
              const Tensor& control, const TextEncoderControl& layout) const;
  /// Applies the modules of add_dense() to pooled states, in their order.
  Tensor dense(ProgramBuilder& builder, const Tensor& pooled) const;
  void add_dense(Linear linear, Activation activation) {
    dense_.emplace_back(std::move(linear), activation);
  }
  /// Applies the bare model's pooler to hidden states; needs has_pooler(). Returns (rows, D) f32.
  Tensor pooler_output(ProgramBuilder& builder, const Tensor& states) const;
  /// Logits of labels, (rows, labels) f32, from hidden states; needs EncoderTask::kClassify.
  Tensor logits(ProgramBuilder& builder, const Tensor& states, const Tensor& control,
                const TextEncoderControl& layout) const;
  /// Logits of start and end, (rows, length, 2) f32, from hidden states; needs
  /// EncoderTask::kAnswer.
  Tensor spans(ProgramBuilder& builder, const Tensor& states) const;

  /// Columns of the token embedding table.
  uint32_t embedding_columns() const {
    return static_cast<uint32_t>(embedding_.words.shape.columns());
  }
  /// An id that is not padding.
  uint32_t no_padding() const { return config_.pad == 0 ? 1 : 0; }
  bool has_pooler() const { return pooler_.has_value(); }
  /// Columns for a token: of all activations that are alive at one time, of attention's inputs and
  /// outputs, and of the widest activation.
  uint64_t live_columns() const;
  uint64_t attention_columns() const;
  uint64_t widest_columns() const;
  /// Bytes of position scores of a row, for each pair of positions.
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
  std::vector<float> relative_bias_;  // result of t5_bias()
  std::optional<Tensor> distances_;   // for disentangled attention: (2 * span, D)
  std::optional<Norm> distances_norm_;
  std::vector<std::pair<Linear, Activation>> dense_;
};

}  // namespace mulciber
