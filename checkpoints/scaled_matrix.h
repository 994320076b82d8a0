// Matrices that quantizers write as several tensors of a safetensors file, put together as blocks.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checkpoints/checkpoint_tensor.h"
#include "checkpoints/json.h"

namespace mulciber {

/// What `quantization_config` of config.json says of the weights.
struct QuantizationConfig {
  enum class Method { kNone, kGptq, kAwq, kFp8 };
  Method method = Method::kNone;
  std::int64_t group_size = -1;  // of kGptq and kAwq: columns that share a scale; -1: all
  bool zero_less_one = false;    // of kGptq: zero points are stored less 1, modulo 16
  std::uint64_t block_rows = 128, block_columns = 128;  // of kFp8: elements that share a scale
};

/// config: config.json; where: its file, for messages. Throws ModelError for a method, a number of
/// bits or an arrangement that is not read.
QuantizationConfig read_quantization(const Json& config, const std::string& where);

/// What puts a tensor together: each block is a run of bytes as gguf_block_bytes() (base/blocks.h)
/// counts them.
///   kScaledF8E4M3          f32 scale, 32 numbers in E4M3
///   kF16                   a number
///   kInt4_32, kInt4_128    f16 scale, zero point in 16 bits, 16 bytes of the numbers as in q4_0
class BlockParts {
 public:
  virtual ~BlockParts() = default;
  /// Whole blocks, from block `first` of the matrix on.
  virtual void write(std::uint64_t first, std::span<std::byte> to) const = 0;
  /// Nobody reads them soon.
  virtual void release() const = 0;
};

/// The matrices among tensors that are such, by the name that they had before they were quantized
/// (`NAME.weight`), sorted by it:
///   fp8        `.weight` in F8_E4M3, with `.weight_scale` or `.weight_scale_inv` for the matrix,
///              its rows, or blocks of rows and columns; without either as it is
///   GPTQ, AWQ  `.qweight`, `.qzeros` and `.scales`, as AutoGPTQ and AutoAWQ (GEMM) pack them
/// Scales for activations are passed over. GPTQ's columns in the order of their activations
/// (desc_act), of which neighbours share no scale, become f16, and blocks beside them whose columns
/// are sorted by group. tensors: sorted by name; they
/// outlive what is returned. where: their file, for messages. Throws ModelError for tensors that do
/// not fit each other.
std::vector<std::unique_ptr<CheckpointTensor>> scaled_matrices(
    std::span<const CheckpointTensor* const> tensors, const QuantizationConfig& config,
    const std::string& where);

}  // namespace mulciber
