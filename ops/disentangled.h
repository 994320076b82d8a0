// Scores by distance, as disentangled attention has them.
#pragma once

#include "ops/attention.h"

namespace mulciber {

struct DisentangledOptions {
  uint32_t heads = 1;
  uint32_t head_size = 0;
  float scale = 1;                  // onto the products
  bool content_to_position = true;  // query times the distance's key
  bool position_to_content = true;  // key times the distance's query
  Tensor control;                   // u32
  /// (2 * length - 1): the row of the distances for a query that stands 1 - length, ..., length - 1
  /// after its key.
  ControlArray<uint32_t> row_of;
  ControlArray<uint32_t> key_counts;  // (rows)
};

/// What attention() reads as control: a bias of AttentionBias::kMaskPerRowAndHead, and key_counts.
/// qkv: (rows, length, columns) f32, queries of all heads, their keys, and more; distances:
/// (distances, columns) f32, queries and keys likewise. Takes memory for every pair
/// of positions. Throws ShapeError naming the layer.
/// Source: He et al. 2021, arXiv:2006.03654, section 3.1.
AttentionControl disentangled_bias(ProgramBuilder& builder, const Tensor& qkv,
                                   const Tensor& distances, const DisentangledOptions& options);

}  // namespace mulciber
