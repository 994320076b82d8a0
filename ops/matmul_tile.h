// The tile that a workgroup of a product computes, by the selected kernel row.
#pragma once

#include <optional>

#include "runtime/kernel.h"
#include "runtime/program.h"

namespace mulciber {

/// The facts about a product's extents that selection uses.
ShapeFacts matmul_facts(uint64_t rows, uint64_t columns, uint64_t depth);

struct MatmulTile {
  /// all_rows: rows of x, which give the height where the kernel row leaves it open.
  MatmulTile(const Kernel& kernel, const Capabilities& device, uint64_t all_rows);

  /// The value of MATMUL_WHOLE for a product, where the kernel row has this constant.
  std::optional<uint32_t> whole(const Kernel& kernel, uint64_t y_rows, uint64_t y_columns,
                                uint64_t depth) const;

  /// The value of MATMUL_STORE_QUADS, where the kernel row has it. padded: the columns of y behind
  /// the result may be overwritten.
  std::optional<uint32_t> store_quads(const Kernel& kernel, const Tensor& y, uint64_t first,
                                      uint64_t y_columns, bool padded) const;

  bool open_height;      // the op chooses MATMUL_ROWS
  uint32_t block_types;  // types that one weight may mix
  uint64_t rows, columns;
};

}  // namespace mulciber
