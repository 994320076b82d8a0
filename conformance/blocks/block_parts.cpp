#include "conformance/blocks/block_parts.h"

#include <algorithm>
#include <cmath>

#include "conformance/ops/attention_reference.h"
#include "conformance/ops/norm_reference.h"
#include "conformance/ops/product_reference.h"

namespace mulciber::conformance {
namespace {

Linear linear_of(const LinearPart& part, std::span<const Tensor> inputs) {
  return {inputs[part.weight], inputs[part.bias]};
}

Norm norm_of(const NormPart& part, std::span<const Tensor> inputs) {
  return {inputs[part.gain_bias], part.epsilon};
}

// Computes softmax(q k^T / sqrt(d_k)) v.
CpuTensor attend(const HeadSizes& sizes, const CpuTensor& q, const CpuTensor& kv,
                 AttentionColumns columns, const BlockView& view) {
  AttentionOptions options;
  options.heads = options.kv_heads = sizes.heads;
  options.head_size = sizes.key_size;
  options.value_size = sizes.value_size;
  options.scale = 1.0f / std::sqrt(static_cast<float>(sizes.key_size));
  options.causal = view.causal;
  options.rows_per_kv = view.rows_per_kv;
  if (!view.control.values.empty()) options.control = view.words;
  return attention_reference(q, kv, view.control, columns, options).result;
}

Bounded at(const CpuTensor& tensor, size_t index) {
  return {tensor.values[index], tensor.bounds.empty() ? 0 : tensor.bounds[index]};
}

}  // namespace

SelfAttention self_attention_of(const SelfAttentionPart& part, std::span<const Tensor> inputs) {
  return {part.sizes, linear_of(part.qkv, inputs), linear_of(part.out, inputs)};
}

CrossAttention cross_attention_of(const CrossAttentionPart& part, std::span<const Tensor> inputs) {
  return {part.sizes, linear_of(part.query, inputs), linear_of(part.key_value, inputs),
          linear_of(part.out, inputs)};
}

FeedForward feed_forward_of(const FeedForwardPart& part, std::span<const Tensor> inputs) {
  return {linear_of(part.up, inputs), linear_of(part.down, inputs), part.activation};
}

EncoderLayer encoder_layer_of(const LayerPart& part, std::span<const Tensor> inputs) {
  return {self_attention_of(part.self, inputs), norm_of(part.self_norm, inputs),
          feed_forward_of(part.feed_forward, inputs), norm_of(part.feed_forward_norm, inputs),
          part.norms};
}

DecoderLayer decoder_layer_of(const LayerPart& part, std::span<const Tensor> inputs) {
  return {self_attention_of(part.self, inputs),
          norm_of(part.self_norm, inputs),
          cross_attention_of(*part.cross, inputs),
          norm_of(part.cross_norm, inputs),
          feed_forward_of(part.feed_forward, inputs),
          norm_of(part.feed_forward_norm, inputs),
          part.norms};
}

CpuTensor sum_reference(const CpuTensor& a, const CpuTensor& b) {
  CpuTensor sum{a.shape, a.type, {}, {}};
  for (size_t i = 0; i < a.values.size(); ++i) append(sum, at(a, i) + at(b, i));
  return sum;
}

CpuTensor BlockReference::linear(const LinearPart& part, const CpuTensor& x,
                                 Activation activation) const {
  const CpuTensor& weight = inputs_[part.weight];
  const uint64_t rows = x.shape.rows(), columns = weight.shape.rows();
  std::vector<uint64_t> extents;
  for (size_t i = 0; i + 1 < x.shape.rank(); ++i) extents.push_back(x.shape[static_cast<int>(i)]);
  extents.push_back(columns);
  CpuTensor y{Shape(extents), x.type, {}, {}};
  const Product product(x, weight, &inputs_[part.bias], arithmetic_);
  for (uint64_t i = 0; i < rows; ++i) {
    for (uint64_t j = 0; j < columns; ++j)
      append(y, activation_reference(product.at(i, j), activation));
  }
  return y;
}

CpuTensor BlockReference::norm(const NormPart& part, const CpuTensor& x,
                               const CpuTensor* residual) const {
  return layer_norm_reference(x, inputs_[part.gain_bias], residual, part.epsilon);
}

CpuTensor BlockReference::attention(const SelfAttentionPart& part, const CpuTensor& x,
                                    const BlockView& view) const {
  const CpuTensor heads = linear(part.qkv, x);
  const uint32_t keys = part.sizes.key_columns();
  return linear(part.out, attend(part.sizes, heads, heads, {0, keys, 2 * keys}, view));
}

CpuTensor BlockReference::step(const SelfAttentionPart& part, const CpuTensor& x, BlockCache& cache,
                               const BlockView& view) const {
  const CpuTensor heads = linear(part.qkv, x);
  const uint64_t rows = x.shape[0], context = cache.tensor.shape[1],
                 columns = cache.tensor.shape.columns();
  const uint32_t keys = part.sizes.key_columns();
  cache.tensor.bounds.resize(cache.tensor.values.size());
  for (uint64_t row = 0; row < rows; ++row) {
    for (uint64_t column = 0; column < columns; ++column) {
      put(cache.tensor, (row * context + cache.position) * columns + column,
          at(heads, row * heads.shape.columns() + keys + column));
    }
  }
  return linear(part.out, attend(part.sizes, heads, cache.tensor, {0, 0, keys}, view));
}

CpuTensor BlockReference::attention(const CrossAttentionPart& part, const CpuTensor& x,
                                    const CpuTensor& memory, const BlockView& view) const {
  return linear(part.out, attend(part.sizes, linear(part.query, x), memory,
                                 {0, 0, part.sizes.key_columns()}, view));
}

CpuTensor BlockReference::feed_forward(const FeedForwardPart& part, const CpuTensor& x) const {
  return linear(part.down, linear(part.up, x, part.activation));
}

CpuTensor BlockReference::layer(const LayerPart& part, const CpuTensor& x, const BlockView& self,
                                BlockCache* cache, const CpuTensor* memory,
                                const BlockView* cross) const {
  const auto sublayer = [&](const CpuTensor& y, const NormPart& norm_part, auto&& run) {
    if (part.norms == NormPlacement::kBefore) return sum_reference(y, run(norm(norm_part, y)));
    const CpuTensor result = run(y);
    return norm(norm_part, result, &y);
  };
  CpuTensor y = sublayer(x, part.self_norm, [&](const CpuTensor& z) {
    return cache ? step(part.self, z, *cache, self) : attention(part.self, z, self);
  });
  if (part.cross) {
    y = sublayer(y, part.cross_norm,
                 [&](const CpuTensor& z) { return attention(*part.cross, z, *memory, *cross); });
  }
  return sublayer(y, part.feed_forward_norm,
                  [&](const CpuTensor& z) { return feed_forward(part.feed_forward, z); });
}

}  // namespace mulciber::conformance
