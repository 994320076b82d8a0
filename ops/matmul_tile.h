// What a workgroup of a product computes at a time, by the row that selection chose.
#pragma once

#include <optional>

#include "runtime/kernel.h"
#include "runtime/program.h"

namespace mulciber {

/// What selection asks of a product's extents.
ShapeFacts matmul_facts(uint64_t rows, uint64_t columns, uint64_t depth);

struct MatmulTile {
  /// all_rows: of x, by which the height is chosen where the row leaves it open.
  MatmulTile(const Kernel& kernel, const Capabilities& device, uint64_t all_rows);

  /// MATMUL_WHOLE for such a product, where the row takes it.
  std::optional<uint32_t> whole(const Kernel& kernel, uint64_t y_rows, uint64_t y_columns,
                                uint64_t depth) const;

  /// MATMUL_STORE_QUADS, where the row takes it. padded: what follows the columns in y is free.
  std::optional<uint32_t> store_quads(const Kernel& kernel, const Tensor& y, uint64_t first,
                                      uint64_t y_columns, bool padded) const;

  bool open_height;      // the op chooses MATMUL_ROWS
  uint32_t block_types;  // that one weight may be of
  uint64_t rows, columns;
};

}  // namespace mulciber
