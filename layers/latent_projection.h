// Projections of multi-head latent attention, with those of keys and values absorbed.
#pragma once

#include <optional>
#include <vector>

#include "layers/linear.h"
#include "ops/head_matmul.h"

namespace mulciber {

/// Adapters of a matrix for each head, which may have been made of one in another form than the
/// weight's.
struct HeadLowRank {
  LowRank low_rank;
  uint32_t first = 0, step = 0;  // as HeadMatrices says, of the matrix that it changes
  bool transposed = false;
};

/// A matrix for each head, as files hold them.
struct HeadMatrices {
  Tensor weight;
  uint32_t first = 0, step = 0;  // row of the weight where those of head 0 begin, and of the next
  bool transposed = false;       // HeadMatmulOptions::transposed
  std::vector<HeadLowRank> low_ranks = {};

  /// head_matmul() of these; heads: what it is to say of x and y. Throws ShapeError naming the
  /// layer.
  void operator()(ProgramBuilder& builder, const Tensor& x, const Tensor& y,
                  HeadMatmulOptions heads, const AdapterScales* adapters) const;
};

/// Queries, keys and values by way of narrow vectors, of which that of keys and values, c, is
/// shared by all heads, as are the elements k_r of keys that rotate (multi-head latent attention).
/// Key and value of a head would be W_k c beside k_r, and W_v c. They are not made: scores are
///   q . (W_k c) + q_r . k_r = (W_k^T q) . c + q_r . k_r,
/// and the output is W_v times the weighted sum of c, so that heads attend over the row [k_r, c],
/// and c is its value. A position takes rotated + rank numbers of the cache, not heads * (rotated +
/// rest + value size).
///
/// Every pass does so, long ones too. Of rest 128, rotated 64, value 128 and rank 512 a pair of a
/// query and a key costs each head 2 * (576 + 512) operations, and over whole keys and values 2 *
/// (192 + 128), but these have to be made of each position that the pass sees, by 2 * 512 * (128 +
/// 128) operations a head: they would be fewer from 171 queries on, in a chunk of 512 before long
/// contexts by at most a half, and take up to 57 times as much memory as the positions have. Two
/// forms would also give a token other bits by the length of the chunk in which it came.
/// Source: DeepSeek-AI 2024, arXiv:2405.04434, section 2.1.
struct LatentProjection {
  std::optional<Linear> query_down;   // (query rank, D); none: `query` takes x
  std::optional<Tensor> query_gains;  // (1, query rank): its result is normalized
  Linear query;                       // (heads * (rotated + rest), query rank or D)
  Linear down;                        // (rotated + rank, D): k_r, c
  Tensor gains;                       // (1, rank): c is normalized
  float epsilon = 0;
  HeadMatrices key_up;    // W_k: of a head (rest, rank), transposed; or (rank, rest), which is not
  HeadMatrices value_up;  // W_v: of a head (value size, rank)
  uint32_t heads = 0, rotated = 0, rest = 0, rank = 0, value_size = 0;

  uint32_t key_columns() const { return rotated + rank; }

  /// x: (rows, length, D); result: (rows, length, (heads + 1) * key_columns()), queries of all
  /// heads and the key, each [to be rotated, rank]. Throws ShapeError naming the layer.
  Tensor operator()(ProgramBuilder& builder, const Tensor& x, const AdapterScales* adapters) const;
  /// attended: (rows, length, heads * rank), weighted sums of c; result: (rows, length, heads *
  /// value_size). Throws ShapeError naming the layer.
  Tensor values(ProgramBuilder& builder, const Tensor& attended,
                const AdapterScales* adapters) const;
};

}  // namespace mulciber
