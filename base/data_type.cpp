#include "base/data_type.h"

#include <fmt/format.h>

#include "base/blocks.h"
#include "base/grids.h"
#include "mulciber/error.h"

namespace mulciber {

uint32_t size_of(DataType type) {
  if (is_block_type(type) || type == DataType::kQ8_1) return 0;
  return type == DataType::kF16 || type == DataType::kBF16 ? 2 : 4;
}

uint32_t block_elements(DataType type) {
  if (type == DataType::kQ8_1) return 32;
  if (!is_block_type(type)) return 1;
  const bool super_blocks = (type >= DataType::kQ4_K && type <= DataType::kQ3_K) ||
                            type == DataType::kIQ4_XS || is_grid_type(type);
  return super_blocks ? 256 : 32;
}

uint64_t row_bytes(DataType type, uint64_t columns) {
  const uint64_t block = block_elements(type);
  if (block == 1) return columns * size_of(type);
  if (columns % block != 0) {
    throw ShapeError("row",
                     fmt::format("{} elements are not whole blocks of {}, which have {}", columns,
                                 name_of(type), block),
                     "store such a matrix as f32 or f16");
  }
  if (type == DataType::kQ8_1) return uint64_t{4} * Q8_1_ROW_WORDS(columns);
  if (is_grid_type(type)) return uint64_t{4} * GRID_ROW_WORDS(grid_format(type), columns);
  return uint64_t{4} * BLOCKS_ROW_WORDS(block_format(type), columns);
}

const char* name_of(DataType type) {
  switch (type) {
    case DataType::kF32: return "f32";
    case DataType::kF16: return "f16";
    case DataType::kU32: return "u32";
    case DataType::kBF16: return "bf16";
    case DataType::kQ8_0: return "q8_0";
    case DataType::kQ4_0: return "q4_0";
    case DataType::kQ4_1: return "q4_1";
    case DataType::kQ5_0: return "q5_0";
    case DataType::kQ5_1: return "q5_1";
    case DataType::kQ4_K: return "q4_k";
    case DataType::kQ5_K: return "q5_k";
    case DataType::kQ6_K: return "q6_k";
    case DataType::kQ2_K: return "q2_k";
    case DataType::kQ3_K: return "q3_k";
    case DataType::kIQ4_NL: return "iq4_nl";
    case DataType::kIQ4_XS: return "iq4_xs";
    case DataType::kMXFP4: return "mxfp4";
    case DataType::kF8E4M3: return "f8_e4m3";
    case DataType::kInt4_32: return "int4_32";
    case DataType::kInt4_128: return "int4_128";
    case DataType::kQ8_1: return "q8_1";
    case DataType::kHalf: return "half";
    case DataType::kBlocks: return "blocks";
    case DataType::kGrids: return "grids";
    case DataType::kIQ2_XXS: return "iq2_xxs";
    case DataType::kIQ2_XS: return "iq2_xs";
    case DataType::kIQ2_S: return "iq2_s";
    case DataType::kIQ3_XXS: return "iq3_xxs";
    case DataType::kIQ3_S: return "iq3_s";
  }
  return "?";
}

}  // namespace mulciber
