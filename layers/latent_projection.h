// Projections of multi-head latent attention; those of keys and values are absorbed.
#pragma once

#include <optional>
#include <vector>

#include "layers/linear.h"
#include "ops/head_matmul.h"

namespace mulciber {

/// Low-rank adapters of a matrix per head. They may have been made for another form of the matrix
/// than the weight's.
struct HeadLowRank {
  LowRank low_rank;
  uint32_t first = 0, step = 0;  // HeadMatrices::first and step, for the adapted matrix
  bool transposed = false;
};

/// One matrix per head, stored as files hold it.
struct HeadMatrices {
  Tensor weight;
  uint32_t first = 0, step = 0;  // first row of head 0 in the weight, distance to the next head
  bool transposed = false;       // HeadMatmulOptions::transposed
  std::vector<HeadLowRank> low_ranks = {};

  /// Calls head_matmul() with these matrices; heads: its options for x and y. Throws ShapeError
  /// naming the layer.
  void operator()(ProgramBuilder& builder, const Tensor& x, const Tensor& y,
                  HeadMatmulOptions heads, const AdapterScales* adapters) const;
};

/// Queries, keys and values through narrow vectors. All heads share the narrow vector c of keys and
/// values and the rotated elements k_r of keys (multi-head latent attention). A head's key would be
/// W_k c beside k_r, its value W_v c. They are never computed: scores are
///   q . (W_k c) + q_r . k_r = (W_k^T q) . c + q_r . k_r,
/// and the output is W_v times the weighted sum of c. So heads attend over the row [k_r, c], whose
/// part c is also the value. A position takes rotated + rank numbers of the cache, not heads *
/// (rotated + rest + value size).
///
/// Every pass does so, also long ones. With rest 128, rotated 64, value 128 and rank 512, a pair of
/// a query and a key costs each head 2 * (576 + 512) operations. Whole keys and values would cost 2
/// * (192 + 128), but they have to be computed for each position that the pass sees, by 2 * 512 *
/// (128 + 128) operations a head. That form would need fewer operations from 171 queries on (in a
/// chunk of 512 before long contexts it saves at most half of them), and up to 57 times the memory
/// of the positions. With two forms a token's bits would also depend on the length of its chunk.
/// Source: DeepSeek-AI 2024, arXiv:2405.04434, section 2.1.
struct LatentProjection {
  std::optional<Linear> query_down;   // (query rank, D); none: `query` takes x
  std::optional<Tensor> query_gains;  // (1, query rank): gains of the norm of its result
  Linear query;                       // (heads * (rotated + rest), query rank or D)
  Linear down;                        // (rotated + rank, D): k_r, c
  Tensor gains;                       // (1, rank): gains of the norm of c
  float epsilon = 0;
  HeadMatrices key_up;    // W_k: (rest, rank) per head, transposed; or (rank, rest), not transposed
  HeadMatrices value_up;  // W_v: (value size, rank) per head
  uint32_t heads = 0, rotated = 0, rest = 0, rank = 0, value_size = 0;

  uint32_t key_columns() const { return rotated + rank; }

  /// x: (rows, length, D); result: (rows, length, (heads + 1) * key_columns()): the queries of all
  /// heads, then the key, each [part to rotate, rank]. Throws ShapeError naming the layer.
  Tensor operator()(ProgramBuilder& builder, const Tensor& x, const AdapterScales* adapters) const;
  /// attended: (rows, length, heads * rank), weighted sums of c; result: (rows, length, heads *
  /// value_size). Throws ShapeError naming the layer.
  Tensor values(ProgramBuilder& builder, const Tensor& attended,
                const AdapterScales* adapters) const;
};

}  // namespace mulciber
