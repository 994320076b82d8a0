// Matrices that quantizers store as several tensors of a safetensors file, put together as blocks.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checkpoints/checkpoint_tensor.h"
#include "checkpoints/json.h"

namespace mulciber {

/// The weight quantization that `quantization_config` of config.json describes.
struct QuantizationConfig {
  enum class Method { kNone, kGptq, kAwq, kFp8 };
  Method method = Method::kNone;
  std::int64_t group_size = -1;  // kGptq, kAwq: columns that share a scale; -1: all
  bool zero_less_one = false;    // kGptq: zero points are stored minus 1, modulo 16
  std::uint64_t block_rows = 128, block_columns = 128;  // kFp8: elements that share a scale
};

/// Reads the configuration. config: config.json; where: its file, for messages. Throws ModelError
/// for a method, number of bits or arrangement that is not supported.
QuantizationConfig read_quantization(const Json& config, const std::string& where);

/// Puts a matrix together from its tensors. Each block has gguf_block_bytes() (base/blocks.h)
/// bytes:
///   kScaledF8E4M3          f32 scale, 32 numbers in E4M3
///   kF16                   a number
///   kInt4_32, kInt4_128    f16 scale, 16-bit zero point, 16 bytes of numbers like q4_0's
class BlockParts {
 public:
  virtual ~BlockParts() = default;
  /// Writes whole blocks, from block `first` of the matrix on.
  virtual void write(std::uint64_t first, std::span<std::byte> to) const = 0;
  /// Tells that the tensors will not be read soon.
  virtual void release() const = 0;
};

/// Finds the quantized matrices among tensors. Each has its original name (`NAME.weight`), by which
/// they are sorted:
///   fp8        `.weight` in F8_E4M3, with `.weight_scale` or `.weight_scale_inv` for the matrix,
///              its rows, or blocks of rows and columns; without either unchanged
///   GPTQ, AWQ  `.qweight`, `.qzeros` and `.scales`, as AutoGPTQ and AutoAWQ (GEMM) pack them
/// Scales for activations are ignored. GPTQ matrices with columns in the order of their activations
/// (desc_act), whose neighbours share no scale, become f16, and additionally blocks with columns
/// sorted by group. tensors: sorted by name; they must outlive the result. where: their file, for
/// messages. Throws ModelError for tensors that do not match each other.
std::vector<std::unique_ptr<CheckpointTensor>> scaled_matrices(
    std::span<const CheckpointTensor* const> tensors, const QuantizationConfig& config,
    const std::string& where);

}  // namespace mulciber
