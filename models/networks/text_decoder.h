// A decoder of texts over what an encoder made of something else: sound, or a picture.
#pragma once

#include <optional>
#include <span>

#include "layers/embedding.h"
#include "layers/transformer.h"

namespace mulciber {

/// Source: Vaswani et al. 2017, arXiv:1706.03762.
struct TextDecoder {
  DataType activations = DataType::kF32;
  uint32_t vocabulary = 0, context = 0;  // ids; tokens it can be fed
  TokenEmbedding embedding;
  Decoder stack;
  Linear output;  // (vocabulary, D)

  /// Columns of keys and values that a layer keeps of a position, of the memory or of the text.
  uint32_t memory_columns() const;
  /// Into memories: of each layer, (1, positions, memory_columns()).
  void project(ProgramBuilder& builder, const Tensor& encoded,
               std::span<const Tensor> memories) const;
  /// The next tokens of every row. picked: of which tokens logits are wanted, counted over all
  /// rows; none: of all. Result: logits (rows, length, vocabulary) f32, or (picked, 1, vocabulary).
  Tensor step(ProgramBuilder& builder, const TokenInput& tokens, const StackControl& control,
              std::span<const Tensor> memories, const Decoder::Step& state,
              const std::optional<ControlArray<uint32_t>>& picked = std::nullopt) const;
  /// Whole texts, each token seeing those before it. Result: as step().
  Tensor pass(ProgramBuilder& builder, const TokenInput& tokens, const StackControl& control,
              std::span<const Tensor> memories, Trace* trace = nullptr) const;

 private:
  Tensor logits(ProgramBuilder& builder, const Tensor& states) const;
};

}  // namespace mulciber
