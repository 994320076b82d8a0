// Block types whose numbers are entries of a table of the type: ggml's IQ2 and IQ3, in the form
// that GGUF files have and in the layout that kernels read.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/data_type.h"
#include "shaders/include/grids.h"

namespace mulciber {

/// The value of WEIGHT_FORMAT in kernel rows for these types (shaders/include/grids.h).
uint32_t grid_format(DataType type);

/// Bytes of one of GGUF's blocks of 256 elements.
uint32_t grid_block_bytes(DataType type);

/// The magnitude of element `element` (of 8 or 4) of an entry of a format's table.
int grid_magnitude(uint32_t format, uint32_t entry, uint32_t element);

/// Thirty-two consecutive elements of a block.
struct GridGroup {
  std::array<uint32_t, 8> entries{};  // indices into the table; IQ2 uses four of them
  uint32_t signs = 0;                 // bit i: element i is negative
  uint32_t scales[2] = {};            // one for each half of the elements
};

/// Reads group `group`, below 8, of a block.
/// Source: ggml, https://github.com/ggml-org/ggml (ggml-common.h), by their layout.
GridGroup read_grid_group(DataType type, const std::byte* block, uint64_t group);

/// The block's scale. An element is this times (2 * its group's scale + 1) times its magnitude,
/// with its sign. These products are exact in f32.
float grid_super_scale(DataType type, const std::byte* block);

/// Does the work of pack_blocks() (base/blocks.h) for these types.
void pack_grids(DataType type, uint64_t columns, std::span<const std::byte> from,
                std::span<std::byte> to);

}  // namespace mulciber
