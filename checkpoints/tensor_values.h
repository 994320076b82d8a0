// Reads values of checkpoint tensors as floats and dequantizes blocks.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/half.h"
#include "checkpoints/checkpoint_tensor.h"

namespace mulciber {

/// Named in messages about a type that has no float values.
constexpr const char* kReadableTypes =
    "F64, F32, F16, BF16, the block types of GGUF, and matrices in F8_E4M3 with a multiple of 32 "
    "columns are supported";

/// Whether read_floats() can read a type: F64, F32, F16, BF16 and every block type.
bool has_float_values(CheckpointType type);

/// Elements [first, first + count) of a tensor, widened or dequantized. `first` and `count` must be
/// whole blocks of the type. Throws ModelError for a type that has_float_values() refuses. Source
/// of the blocks: ggml, https://github.com/ggml-org/ggml (ggml-common.h), by their layout.
std::vector<float> read_floats(const CheckpointTensor& tensor, uint64_t first, uint64_t count);
/// Converts `count` elements in memory in the same way.
std::vector<float> floats_of(CheckpointType type, std::span<const std::byte> blocks,
                             uint64_t count);

}  // namespace mulciber
