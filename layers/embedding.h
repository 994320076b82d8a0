// Token and position embedding.
#pragma once

#include <optional>
#include <vector>

#include "layers/linear.h"
#include "layers/norm.h"
#include "layers/trace.h"
#include "ops/embedding.h"

namespace mulciber {

/// Position of a program's token ids in control.
struct TokenInput {
  Tensor control;                 // u32
  ControlArray<uint32_t> tokens;  // (rows, length)
  uint32_t rows = 1, length = 1;
  /// Position of token 0, for all rows or for each; none: 0.
  std::optional<ControlArray<uint32_t>> first_position;
  DataType type = DataType::kF32;  // type of activations
};

/// x = table[id] * scale [+ positions[position]] [, normalized].
struct TokenEmbedding {
  Tensor table;                     // (vocabulary, D)
  std::optional<Tensor> positions;  // (max positions, D) f32, sinusoidal or learned
  float scale = 1;
  std::optional<Norm> norm;

  /// Result: (rows, length, D), the input of a stack. Where hidden states are traced a copy is kept
  /// as its "output". Throws ShapeError naming the layer.
  Tensor operator()(ProgramBuilder& builder, const TokenInput& input, Trace* trace = nullptr) const;
};

/// x = words[id] + positions[position] + types[type], normalized, and multiplied by a matrix where
/// the tables are narrower than the network. Source: Devlin et al. 2019, arXiv:1810.04805; narrow
/// tables: Lan et al. 2020, arXiv:1909.11942.
struct SegmentEmbedding {
  Tensor words;                     // (vocabulary, E)
  std::optional<Tensor> positions;  // (max positions, E) f32
  std::optional<Tensor> types;      // (types, E) f32
  Norm norm;
  std::optional<Linear> project;  // (D, E)

  struct Input {
    TokenInput tokens;
    std::optional<ControlArray<uint32_t>> positions;  // (rows, length); none: counted from 0
    /// (rows, length); none, with positions given: all tokens have type 0.
    std::optional<ControlArray<uint32_t>> types;
  };
  /// See TokenEmbedding::operator().
  Tensor operator()(ProgramBuilder& builder, const Input& input, Trace* trace = nullptr) const;
};

/// The frequencies of sinusoidal positions, from 1 to 1/10000 radian per position.
enum class Wavelengths {
  kVaswani,        // p / 10000^(2i / width): excludes the lowest frequency
  kTensor2Tensor,  // p / 10000^(2i / (width - 2)), which includes it: fairseq, M2M-100
};

/// Embeddings of positions first, first + 1, ...: (positions, width) row-major, computed in double
/// precision. Component i of the first ceil(width / 2) is the sine of the i-th angle, the others
/// are the cosines of the same angles: Marian's order of what Vaswani et al. 2017
/// (arXiv:1706.03762, section 3.5) interleave.
std::vector<float> sinusoidal_positions(uint32_t positions, uint32_t width,
                                        Wavelengths wavelengths = Wavelengths::kVaswani,
                                        uint32_t first = 0);

}  // namespace mulciber
