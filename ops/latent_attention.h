// Attention of multi-head latent attention (MLA), absorbed: each position has one key for all
// heads.
#pragma once

#include "ops/attention.h"

namespace mulciber {

/// Computes softmax(scale q k^T) v as attention() does, over one key head whose value is the last
/// value_size columns of the key: the same bytes.
/// q: columns of a (rows, q_len, ...) tensor, heads of head_size, up to 1024; cache: (rows,
/// context, head_size), or paged as for attention(), of q's type, or f16 or q8_0 where q is f32.
/// options: kv_heads 1, head_size of the key and value_size of its part; allowed beside these are
/// scale, causal, window and control without ancestry. Result: (rows, q_len, heads * value_size),
/// of q's type. Throws ShapeError naming the layer.
/// Source: DeepSeek-AI 2024, arXiv:2405.04434, section 2.1; over one key Shazeer 2019,
/// arXiv:1911.02150.
Tensor latent_attention(ProgramBuilder& builder, const HeadColumns& q, const Tensor& cache,
                        const AttentionOptions& options);

}  // namespace mulciber
