// Scores by distance, for disentangled attention.
#pragma once

#include "ops/attention.h"

namespace mulciber {

struct DisentangledOptions {
  uint32_t heads = 1;
  uint32_t head_size = 0;
  float scale = 1;                  // factor of the products
  bool content_to_position = true;  // query times the distance's key
  bool position_to_content = true;  // key times the distance's query
  Tensor control;                   // u32
  /// (2 * length - 1): the row of `distances` for a query that is 1 - length, ..., length - 1
  /// positions after its key.
  ControlArray<uint32_t> row_of;
  ControlArray<uint32_t> key_counts;  // (rows)
};

/// Computes the control tensor of attention(): a bias of AttentionBias::kMaskPerRowAndHead, and
/// key_counts. qkv: (rows, length, columns) f32: queries of all heads, then their keys, then
/// anything; distances: (distances, columns) f32, queries and keys likewise. Takes memory for every
/// pair of positions. Throws ShapeError naming the layer.
/// Source: He et al. 2021, arXiv:2006.03654, section 3.1.
AttentionControl disentangled_bias(ProgramBuilder& builder, const Tensor& qkv,
                                   const Tensor& distances, const DisentangledOptions& options);

}  // namespace mulciber
