// Storage types of tensors.
#pragma once

#include <cstdint>

namespace mulciber {

/// Storage types of tensors. Arithmetic is 32-bit whatever the storage (design: accumulate in f32).
/// Types from kQ8_0 on are blocks of elements that share scales (base/blocks.h). They store
/// matrices; kQ8_0 also stores caches of keys, kQ8_1 only activations.
enum class DataType : uint8_t {
  kF32,
  kF16,
  kU32,
  kBF16,
  kQ8_0,
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ4_K,
  kQ5_K,
  kQ6_K,
  kQ2_K,
  kQ3_K,
  kIQ4_NL,
  kIQ4_XS,
  kMXFP4,
  kF8E4M3,   // fp8 with f32 scales of up to 128 elements of a row
  kInt4_32,  // 4 bits with an f16 scale and a zero point for each 32 elements: GPTQ, AWQ
  kInt4_128,
  kQ8_1,  // activations quantized for integer dot products (shaders/include/blocks.h)
  // Block types whose numbers are entries of a table of the type (base/grids.h).
  kIQ2_XXS,
  kIQ2_XS,
  kIQ2_S,
  kIQ3_XXS,
  kIQ3_S,
  // Stand-ins for several types, which only rows of kernels.def use: no tensor has these.
  kHalf,    // f16 or bf16
  kBlocks,  // any block type without a table
  kGrids,   // any block type with a table
};

/// Whether a matrix type's numbers are entries of a table of the type.
inline bool is_grid_type(DataType type) {
  return type >= DataType::kIQ2_XXS && type <= DataType::kIQ3_S;
}
/// Whether a matrix type is a block type.
inline bool is_block_type(DataType type) {
  return (type >= DataType::kQ8_0 && type <= DataType::kInt4_128) || is_grid_type(type);
}
/// Whether kernels multiply a block type with activations in kQ8_1: 32 elements are integers with
/// one scale or two. The other types take activations in f32.
inline bool multiplies_integers(DataType type) {
  return is_block_type(type) && !is_grid_type(type) && type != DataType::kQ2_K &&
         type != DataType::kF8E4M3;
}
/// Bytes of one element; 0 for block types, whose elements have no bytes of their own.
uint32_t size_of(DataType type);
/// Elements of a block; a row must hold whole blocks. 1 for types without blocks.
uint32_t block_elements(DataType type);
/// Bytes of a row of `columns` elements; rows of block types are padded to 16.
/// Throws ShapeError when `columns` is not whole blocks.
uint64_t row_bytes(DataType type, uint64_t columns);
const char* name_of(DataType type);

}  // namespace mulciber
