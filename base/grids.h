// Block types whose numbers stand in a table of the type: IQ2 and IQ3 of ggml, as GGUF files hold
// them, and in the layout in which kernels read them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/data_type.h"
#include "shaders/include/grids.h"

namespace mulciber {

/// What rows for these types take as WEIGHT_FORMAT (shaders/include/grids.h).
uint32_t grid_format(DataType type);

/// Bytes of one of GGUF's blocks of 256 elements.
uint32_t grid_block_bytes(DataType type);

/// The magnitude of number `element` (of 8 or 4) of an entry of a format's table.
int grid_magnitude(uint32_t format, uint32_t entry, uint32_t element);

/// Thirty-two neighbours of a block.
struct GridGroup {
  std::array<uint32_t, 8> entries{};  // of the table; four of IQ2
  uint32_t signs = 0;                 // bit i: element i is negative
  uint32_t scales[2] = {};            // of either half
};

/// group: below 8. Source: ggml, https://github.com/ggml-org/ggml (ggml-common.h), by their layout.
GridGroup read_grid_group(DataType type, const std::byte* block, uint64_t group);

/// An element is this times (2 * its scale + 1) times its magnitude, with its sign. The products
/// fit f32.
float grid_super_scale(DataType type, const std::byte* block);

/// As pack_blocks() (base/blocks.h), which calls it.
void pack_grids(DataType type, uint64_t columns, std::span<const std::byte> from,
                std::span<std::byte> to);

}  // namespace mulciber
