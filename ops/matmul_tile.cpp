#include "ops/matmul_tile.h"

#include <algorithm>

#include "runtime/op.h"
#include "shaders/matmul.h"
#include "shaders/matmul_lanes.h"

namespace mulciber {
namespace {

// Tile height for a kernel that leaves it open. The cost of a tile is about its rows and four more
// (the weights it loads). The list of heights is short because each height is a pipeline.
uint64_t choose_tile_rows(uint64_t rows, uint64_t most) {
  if (rows <= std::min<uint64_t>(8, most)) return rows;
  uint64_t best = most, best_cost = UINT64_MAX;
  for (uint64_t height : {4, 8, 12, 16, 24, 32}) {
    if (height > most) break;
    uint64_t cost = (rows + height - 1) / height * (height + 4);
    if (cost <= best_cost) {
      best = height;
      best_cost = cost;
    }
  }
  return best;
}

}  // namespace

ShapeFacts matmul_facts(uint64_t rows, uint64_t columns, uint64_t depth) {
  ShapeFacts facts = rows <= 8 ? kRowsAtMost8 : kRowsAbove8;
  if (rows == 1) facts |= kOneRow;
  if (rows > 64) facts |= kRowsAbove64;
  if (rows % 16 == 0) facts |= kRowsMultipleOf16;
  if (columns % 4 == 0) facts |= kColumnsMultipleOf4;
  if (columns % 8 == 0) facts |= kColumnsMultipleOf8;
  if (columns % 16 == 0) facts |= kColumnsMultipleOf16;
  if (columns >= 256) facts |= kColumnsAtLeast256;
  if (depth % 4 == 0) facts |= kDepthMultipleOf4;
  if (depth % 8 == 0) facts |= kDepthMultipleOf8;
  if (depth % 16 == 0) facts |= kDepthMultipleOf16;
  if (depth % 32 == 0) facts |= kDepthMultipleOf32;
  if (depth % 64 == 0) facts |= kDepthMultipleOf64;
  return facts;
}

MatmulTile::MatmulTile(const Kernel& kernel, const Capabilities& device, uint64_t all_rows)
    : open_height(kernel.names(RowConstant::MOST_ROWS)),
      block_types(kernel.find(RowConstant::BLOCK_TYPES).value_or(1)),
      rows(open_height ? choose_tile_rows(all_rows, kernel.constant(RowConstant::MOST_ROWS))
                       : kernel.constant(RowConstant::TILE_M)),
      columns(kernel.names(RowConstant::TILE_N)
                  ? kernel.constant(RowConstant::TILE_N)
                  : kernel.constant(RowConstant::THREAD_N) * local_size(kernel, device)) {}

std::optional<uint32_t> MatmulTile::whole(const Kernel& kernel, uint64_t y_rows, uint64_t y_columns,
                                          uint64_t depth) const {
  if ((kernel.needs & kMatrixUnits) == 0 && kernel.made_for != kPlainMatrices) return std::nullopt;
  // The compiler for an Arc A770, whose matrices are 8x8x16, moves loads across a tile's
  // arithmetic where no branch stands in the way, and then spills 2 to 6 registers.
  const bool checked_depth =
      kernel.find(RowConstant::FRAGMENT_N) == 8u && kernel.find(RowConstant::FRAGMENT_K) == 16u;
  // A kernel row without a tile depth takes whole blocks, which divide the depth of every block
  // type.
  const uint32_t tile_depth = kernel.find(RowConstant::TILE_K).value_or(1);
  return (y_rows % rows == 0 ? MATMUL_WHOLE_ROWS : 0u) |
         (y_columns % columns == 0 ? MATMUL_WHOLE_COLUMNS : 0u) |
         (!checked_depth && depth % tile_depth == 0 ? MATMUL_WHOLE_DEPTH : 0u);
}

std::optional<uint32_t> MatmulTile::store_quads(const Kernel& kernel, const Tensor& y,
                                                uint64_t first, uint64_t y_columns,
                                                bool padded) const {
  if (!open_height || kernel.find(RowConstant::THREAD_N).value_or(1) % 4 != 0) return std::nullopt;
  return y.type == DataType::kF32 && y.shape.columns() % 4 == 0 && first % 4 == 0 &&
         (padded || y_columns % 4 == 0);
}

}  // namespace mulciber
