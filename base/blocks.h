// Block types: quantized matrices as GGUF files hold them, and the layout in which kernels read
// them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/data_type.h"
#include "shaders/include/blocks.h"

namespace mulciber {

/// The layout of a block type (shaders/include/blocks.h, or grids.h), and what rows for f16 and
/// bf16 take: the value of their constant WEIGHT_FORMAT. 0 for types without one.
uint32_t block_format(DataType type);

/// Bytes of one of GGUF's blocks of a type; of types that GGUF lacks, of a block of 32 elements as
/// ScaledMatrix (checkpoints/scaled_matrix.h) puts them together.
uint32_t gguf_block_bytes(DataType type);

/// Rows of GGUF blocks in the device's layout: the same integers and scales, in runs of their own.
/// from: rows of `columns` elements as in the file; to: as many rows of row_bytes(type, columns).
/// Source of the blocks: ggml, https://github.com/ggml-org/ggml (ggml-common.h), by their layout.
void pack_blocks(DataType type, uint64_t columns, std::span<const std::byte> from,
                 std::span<std::byte> to);

}  // namespace mulciber
