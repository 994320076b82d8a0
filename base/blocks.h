// Block types: quantized matrices in the form that GGUF files have, and in the layout that kernels
// read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/data_type.h"
#include "shaders/include/blocks.h"

namespace mulciber {

/// The layout of a block type (shaders/include/blocks.h, or grids.h): the value of WEIGHT_FORMAT, a
/// constant of kernel rows for f16 and bf16. 0 for types without a layout.
uint32_t block_format(DataType type);

/// Bytes of one of GGUF's blocks of a type. Types that GGUF lacks have blocks of 32 elements, which
/// ScaledMatrix (checkpoints/scaled_matrix.h) puts together.
uint32_t gguf_block_bytes(DataType type);

/// Converts rows of GGUF blocks to the device's layout: equal integers and scales, each kind in a
/// run of its own.
/// from: rows of `columns` elements as in the file; to: as many rows of row_bytes(type, columns).
/// Source of the blocks: ggml, https://github.com/ggml-org/ggml (ggml-common.h), by their layout.
void pack_blocks(DataType type, uint64_t columns, std::span<const std::byte> from,
                 std::span<std::byte> to);

}  // namespace mulciber
