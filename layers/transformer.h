// Encoder and decoder blocks, and stacks of them.
#pragma once

#include <optional>
#include <vector>

#include "layers/attention.h"
#include "layers/feed_forward.h"
#include "layers/norm.h"
#include "layers/trace.h"

namespace mulciber {

enum class NormPlacement {
  kAfter,   // norm(x + sublayer(x)): Vaswani et al. 2017, arXiv:1706.03762
  kBefore,  // x + sublayer(norm(x)): Xiong et al. 2020, arXiv:2002.04745
};

/// Self-attention, then feed-forward.
struct EncoderLayer {
  SelfAttention self_attention;
  std::optional<Norm> self_attention_norm;  // none, with kBefore: attention reads x without a norm
  FeedForward feed_forward;
  Norm feed_forward_norm;
  NormPlacement norms = NormPlacement::kAfter;

  /// x, result: (rows, length, D); pre-norm layers change x in place. Throws ShapeError naming the
  /// layer.
  Tensor operator()(ProgramBuilder& builder, const Tensor& x, const AttentionView& self) const;
};

/// Self-attention, attention to the encoder's output, then feed-forward.
struct DecoderLayer {
  SelfAttention self_attention;
  Norm self_attention_norm;
  CrossAttention cross_attention;
  Norm cross_attention_norm;
  FeedForward feed_forward;
  Norm feed_forward_norm;
  NormPlacement norms = NormPlacement::kAfter;

  struct Inputs {
    AttentionView self;
    std::optional<KeyValueCache> cache;  // with it: one step; without: whole sequences
    AttentionView cross;
    Tensor memory;  // result of cross_attention.project()
  };
  /// See EncoderLayer::operator().
  Tensor operator()(ProgramBuilder& builder, const Tensor& x, const Inputs& inputs) const;
};

/// The arrays of control that a stack reads.
struct StackControl {
  Tensor tensor;                                  // u32; none: every token sees all others
  std::optional<ControlArray<uint32_t>> lengths;  // (rows): tokens of each sentence
  std::optional<ControlArray<float>> self_masks, cross_masks;  // (layers, heads)
  std::optional<ControlArray<uint32_t>> first_position;        // one, for rotary encoders
  // Span 0: no bias (AttentionOptions::bias_span).
  std::optional<ControlArray<float>> self_bias;  // (heads, 2 * span + 1), for every layer
  uint32_t self_bias_span = 0;
  std::optional<DistanceTable> distances;  // for an encoder's layers
  std::optional<Packing> packing;          // packing of an encoder's sequences
};

/// A stack over embeddings of any kind: tokens, patches of an image, frames of sound.
struct Encoder {
  std::vector<EncoderLayer> layers;
  std::optional<Norm> final_norm;
  bool causal = false;  // each token sees itself and earlier ones

  /// embeddings, result: (rows, length, D), or (1, packed, D) with control.packing; pre-norm layers
  /// change the embeddings in place. Every layer has a command buffer of its own, "layers.N".
  Tensor operator()(ProgramBuilder& builder, const Tensor& embeddings, const StackControl& control,
                    Trace* trace = nullptr) const;
};

/// A stack with attention to an encoder's output.
struct Decoder {
  std::vector<DecoderLayer> layers;
  std::optional<Norm> final_norm;

  /// Processes whole sequences; each token sees earlier ones. embeddings: see Encoder. memories:
  /// per layer, the result of cross_attention.project(). control.lengths: of the memory. Result:
  /// (rows, length, D).
  Tensor operator()(ProgramBuilder& builder, const Tensor& embeddings,
                    std::span<const Tensor> memories, const StackControl& control,
                    Trace* trace = nullptr) const;

  /// State of a step: its arrays in control, and each layer's cache.
  struct Step {
    ControlArray<uint32_t> position;  // tokens before this one, for all rows or for each
    std::optional<ControlArray<uint32_t>> ancestry;  // (rows, context)
    uint32_t rows_per_memory = 1;
    std::span<const Tensor> caches;  // per layer: (rows, context, heads * (d_k + d_v))
  };
  /// Processes the next token of every row, or the next few, each of which sees the earlier ones.
  /// embeddings, result: (rows, length, D).
  Tensor step(ProgramBuilder& builder, const Tensor& embeddings, std::span<const Tensor> memories,
              const StackControl& control, const Step& step) const;
};

}  // namespace mulciber
