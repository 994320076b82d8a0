// How many subgroups a row on matrix units divides its tile among: one rule, from the constants
// that its shader divides by (matmul_coopmat.comp, matmul_coopmat_dot.comp,
// attention_coopmat.comp).
#pragma once

#include "runtime/kernel.h"

namespace mulciber {

/// 0 where the constants do not name it.
constexpr uint32_t value_of(std::span<const RowValue> constants, RowConstant name) {
  for (const RowValue& named : constants) {
    if (named.constant == name) return named.value;
  }
  return 0;
}

/// The subgroups of a workgroup without which some rows of its tile would be nobody's: on matrix
/// units each takes BLOCK_M rows of a product, or FRAGMENT_M queries of attention. 0 where
/// subgroups share no tile.
constexpr uint32_t least_subgroups(std::span<const RowValue> constants) {
  const uint32_t fragment = value_of(constants, RowConstant::FRAGMENT_M);
  const uint32_t block = value_of(constants, RowConstant::BLOCK_M);
  if (fragment == 0) return 0;
  return block == 0 ? value_of(constants, RowConstant::TILE_Q) / fragment
                    : value_of(constants, RowConstant::TILE_M) / block;
}

}  // namespace mulciber
