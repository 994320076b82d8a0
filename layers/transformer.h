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
  std::optional<Norm> self_attention_norm;  // none, of kBefore: attention reads x as it is
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
    Tensor memory;  // what cross_attention.project() gave
  };
  /// As EncoderLayer.
  Tensor operator()(ProgramBuilder& builder, const Tensor& x, const Inputs& inputs) const;
};

/// What a stack reads in control.
struct StackControl {
  Tensor tensor;                                  // u32; none: every token sees every other one
  std::optional<ControlArray<uint32_t>> lengths;  // (rows): tokens of each sentence
  std::optional<ControlArray<float>> self_masks, cross_masks;  // (layers, heads)
  std::optional<ControlArray<uint32_t>> first_position;        // one; of encoders that rotate
  // Span 0: no bias (AttentionOptions::bias_span).
  std::optional<ControlArray<float>> self_bias;  // (heads, 2 * span + 1), of every layer
  uint32_t self_bias_span = 0;
  std::optional<DistanceTable> distances;  // of an encoder's layers
  std::optional<Packing> packing;          // of an encoder's sequences
};

/// A stack over embeddings, whatever they stand for: tokens, patches of a picture, frames of sound.
struct Encoder {
  std::vector<EncoderLayer> layers;
  std::optional<Norm> final_norm;
  bool causal = false;  // each token sees itself and those before it

  /// embeddings, result: (rows, length, D), or (1, packed, D) with control.packing; pre-norm layers
  /// change the embeddings in place. Every layer gets a command buffer of its own, "layers.N".
  Tensor operator()(ProgramBuilder& builder, const Tensor& embeddings, const StackControl& control,
                    Trace* trace = nullptr) const;
};

/// The same with attention to an encoder's output.
struct Decoder {
  std::vector<DecoderLayer> layers;
  std::optional<Norm> final_norm;

  /// Whole sequences, each token seeing those before it; embeddings as in Encoder. memories: per
  /// layer, what its cross_attention.project() gave. control.lengths: of the memory. Result: (rows,
  /// length, D).
  Tensor operator()(ProgramBuilder& builder, const Tensor& embeddings,
                    std::span<const Tensor> memories, const StackControl& control,
                    Trace* trace = nullptr) const;

  /// State of a step: where it stands in control, and each layer's cache.
  struct Step {
    ControlArray<uint32_t> position;  // tokens before this one, of all rows or of each
    std::optional<ControlArray<uint32_t>> ancestry;  // (rows, context)
    uint32_t rows_per_memory = 1;
    std::span<const Tensor> caches;  // per layer: (rows, context, heads * (d_k + d_v))
  };
  /// The next token of every row, or the next few, each seeing those before it. embeddings,
  /// result: (rows, length, D).
  Tensor step(ProgramBuilder& builder, const Tensor& embeddings, std::span<const Tensor> memories,
              const StackControl& control, const Step& step) const;
};

}  // namespace mulciber
