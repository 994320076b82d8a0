// Layers described by the indices of their weights in a list of inputs: one description gives the
// layer on the device and its double-precision definition.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "conformance/op_case.h"
#include "layers/transformer.h"

namespace mulciber::conformance {

struct LinearPart {
  size_t weight = 0, bias = 0;
};
struct NormPart {
  size_t gain_bias = 0;
  float epsilon = 1e-5f;
};
struct SelfAttentionPart {
  HeadSizes sizes;
  LinearPart qkv, out;
};
struct CrossAttentionPart {
  HeadSizes sizes;
  LinearPart query, key_value, out;
};
struct FeedForwardPart {
  LinearPart up, down;
  Activation activation = Activation::kRelu;
};
struct LayerPart {  // an encoder layer; with `cross` a decoder layer
  SelfAttentionPart self;
  NormPart self_norm;
  std::optional<CrossAttentionPart> cross;
  NormPart cross_norm;
  FeedForwardPart feed_forward;
  NormPart feed_forward_norm;
  NormPlacement norms = NormPlacement::kAfter;
};

/// Makes the layers on the device from the tensors of a case.
SelfAttention self_attention_of(const SelfAttentionPart& part, std::span<const Tensor> inputs);
CrossAttention cross_attention_of(const CrossAttentionPart& part, std::span<const Tensor> inputs);
FeedForward feed_forward_of(const FeedForwardPart& part, std::span<const Tensor> inputs);
EncoderLayer encoder_layer_of(const LayerPart& part, std::span<const Tensor> inputs);
DecoderLayer decoder_layer_of(const LayerPart& part, std::span<const Tensor> inputs);

/// The keys that a layer's queries see.
struct BlockView {
  CpuTensor control;
  AttentionControl words;  // its tensor is not used
  bool causal = false;
  uint32_t rows_per_kv = 1;
};

/// Keys and values of earlier steps: (rows, context, heads * (d_k + d_v)), changed in place.
struct BlockCache {
  CpuTensor tensor;
  uint32_t position = 0;
};

/// The double-precision definitions. Bounds pass through all of them: a layer's bound is an error
/// of the next layer's input.
class BlockReference {
 public:
  BlockReference(std::span<const CpuTensor> inputs, const Arithmetic& arithmetic)
      : inputs_(inputs), arithmetic_(arithmetic) {}

  CpuTensor linear(const LinearPart& part, const CpuTensor& x,
                   Activation activation = Activation::kNone) const;
  CpuTensor norm(const NormPart& part, const CpuTensor& x,
                 const CpuTensor* residual = nullptr) const;
  CpuTensor attention(const SelfAttentionPart& part, const CpuTensor& x,
                      const BlockView& view) const;
  CpuTensor step(const SelfAttentionPart& part, const CpuTensor& x, BlockCache& cache,
                 const BlockView& view) const;
  CpuTensor attention(const CrossAttentionPart& part, const CpuTensor& x, const CpuTensor& memory,
                      const BlockView& view) const;
  CpuTensor feed_forward(const FeedForwardPart& part, const CpuTensor& x) const;
  /// `memory`: the result of CrossAttention::project(); like `cross` only for decoder layers.
  /// `cache`: null for whole sequences.
  CpuTensor layer(const LayerPart& part, const CpuTensor& x, const BlockView& self,
                  BlockCache* cache = nullptr, const CpuTensor* memory = nullptr,
                  const BlockView* cross = nullptr) const;

 private:
  std::span<const CpuTensor> inputs_;
  Arithmetic arithmetic_;
};

/// Returns a + b, element by element.
CpuTensor sum_reference(const CpuTensor& a, const CpuTensor& b);

}  // namespace mulciber::conformance
