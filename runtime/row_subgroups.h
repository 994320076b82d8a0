// The number of subgroups that share the tile of a row on matrix units: one rule, from the
// constants by which its shader divides the tile (matmul_coopmat.comp, matmul_coopmat_dot.comp,
// attention_coopmat.comp).
#pragma once

#include "runtime/kernel.h"

namespace mulciber {

/// The value of a constant; 0 where the row does not name it.
constexpr uint32_t value_of(std::span<const RowValue> constants, RowConstant name) {
  for (const RowValue& named : constants) {
    if (named.constant == name) return named.value;
  }
  return 0;
}

/// The least number of subgroups in a workgroup that covers all rows of its tile: on matrix units
/// each subgroup takes BLOCK_M rows of a product, or FRAGMENT_M queries of attention. 0 where
/// subgroups share no tile.
constexpr uint32_t least_subgroups(std::span<const RowValue> constants) {
  const uint32_t fragment = value_of(constants, RowConstant::FRAGMENT_M);
  const uint32_t block = value_of(constants, RowConstant::BLOCK_M);
  if (fragment == 0) return 0;
  return block == 0 ? value_of(constants, RowConstant::TILE_Q) / fragment
                    : value_of(constants, RowConstant::TILE_M) / block;
}

}  // namespace mulciber
