// Products with the matrices of experts; each token is multiplied by those of its routes.
#pragma once

#include <optional>

#include "ops/matmul.h"

namespace mulciber {

struct ExpertOptions {
  /// False: the result has a row for every route. True: the rows of a token are summed, each times
  /// its gate.
  bool combine = false;
  bool normalize = true;  // divide a token's gates by their sum; with `combine`
  Activation activation = Activation::kNone;
  bool gated = false;  // MatmulOptions::gated, within each expert
  /// Where gated and above 0: the gate becomes min(gate, limit), and the gated value is clamped to
  /// [-limit, limit] and increased by 1. Source: gpt-oss, arXiv:2508.10925.
  float limit = 0;
  std::optional<Tensor> bias = {};  // (experts * N) f32
  /// Bytes of the matrices that one node binds. None: as many as the device can bind.
  std::optional<uint64_t> bound_bytes = {};
};

/// For each token t and each of its routes s, with e the route's expert:
///   y[t, s] = activation(x[t] W[e]^T + b[e]), or combined y[t] = sum over s of g[t, s]
///   (activation(x[t, s] W[e]^T + b[e]))
/// x: (tokens, K), combined (tokens, experts_per_token, K), f32 or f16; weight: (experts, N, K)
/// f32, f16, bf16 or a block type (x in f32, K of whole blocks); routes: (tokens,
/// experts_per_token, 2) u32, a result of top_k: bits of the gate's logarithm (f32), expert.
/// Result: (tokens, experts_per_token, N), combined (tokens, N), of x's type; N / 2 columns where
/// gated. Sums in f32. f16: K and the result's columns are even. Only experts with tokens are read.
/// Matrices larger than the device's storage range take several nodes, each with a part of the
/// rows. Throws ShapeError naming the layer. Source: Shazeer et al. 2017, arXiv:1701.06538.
Tensor expert_matmul(ProgramBuilder& builder, const Tensor& x, const Tensor& weight,
                     const Tensor& routes, const ExpertOptions& options = {});

/// Returns y[t] = sum over s of g[t, s] x[t, s], divided by the sum of the gates with `normalize`.
/// x: (tokens, experts_per_token, N) f32; routes: see expert_matmul(). Result: (tokens, N). Throws
/// ShapeError naming the
/// layer.
Tensor expert_sum(ProgramBuilder& builder, const Tensor& x, const Tensor& routes, bool normalize);

}  // namespace mulciber
