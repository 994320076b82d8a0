// A text decoder that attends to an encoder's output for sound or an image.
#pragma once

#include <optional>
#include <span>

#include "layers/embedding.h"
#include "layers/transformer.h"

namespace mulciber {

/// A Transformer decoder with cross-attention. Source: Vaswani et al. 2017, arXiv:1706.03762.
struct TextDecoder {
  DataType activations = DataType::kF32;
  uint32_t vocabulary = 0, context = 0;  // ids; most tokens of a text
  TokenEmbedding embedding;
  Decoder stack;
  Linear output;  // (vocabulary, D)

  /// Columns of a layer's keys and values for a position of the memory or of the text.
  uint32_t memory_columns() const;
  /// Projects the encoder's output to keys and values of cross-attention. memories: one for each
  /// layer, (1, positions, memory_columns()).
  void project(ProgramBuilder& builder, const Tensor& encoded,
               std::span<const Tensor> memories) const;
  /// Adds a decode step over the next tokens of every row. picked: indices, over all rows, of the
  /// tokens whose logits are computed; none: all. Returns logits, (rows, length, vocabulary) or
  /// (picked, 1, vocabulary) f32.
  Tensor step(ProgramBuilder& builder, const TokenInput& tokens, const StackControl& control,
              std::span<const Tensor> memories, const Decoder::Step& state,
              const std::optional<ControlArray<uint32_t>>& picked = std::nullopt) const;
  /// Adds a pass over whole texts, with a causal mask. Returns what step() returns.
  Tensor pass(ProgramBuilder& builder, const TokenInput& tokens, const StackControl& control,
              std::span<const Tensor> memories, Trace* trace = nullptr) const;

 private:
  Tensor logits(ProgramBuilder& builder, const Tensor& states) const;
};

}  // namespace mulciber
