// An affine map of the last dimension.
#pragma once

#include <optional>
#include <vector>

#include "ops/control.h"
#include "ops/matmul.h"

namespace mulciber {

/// What a product takes: x, or what it makes of x by a norm of its own.
struct Operand {
  Operand(const Tensor& of) : x(of) {}  // NOLINT(google-explicit-constructor): mostly just x
  Operand(const Tensor& of, const RowNorm& by) : x(of), norm(by) {}

  Tensor x;
  std::optional<RowNorm> norm;
};

/// Low-rank adapters of a product, any mix of which costs the same: t = x A^T, each of its numbers
/// times the scale that a row of the batch has for it, then y += t B^T. A and B are those of all
/// adapters, one beside the other; scales of 0 leave an adapter out. Where the weight is of several
/// parts, rows below rows, that were adapted each by itself, A has the parts' one below the other,
/// and B is zero outside of a part's own columns.
/// Source: Hu et al. 2021, arXiv:2106.09685; of many at once Sheng et al. 2023, arXiv:2311.03285.
struct LowRank {
  Tensor down;         // A: (parts * count, K)
  Tensor up;           // B: (N, parts * count)
  uint32_t first = 0;  // of a row's scales the first that counts here
  uint32_t count = 0;  // and how many do, the same ones for every part
};

/// Scales of adapters as they stand in control.
struct AdapterScales {
  Tensor control;
  ControlArray<float> scales;  // (rows of the batch, per_row)
  uint32_t per_row = 0;
};

/// What A gives, (..., parts * count), each number times the scale that its row has for its
/// adapter.
Tensor scale_narrow(ProgramBuilder& builder, const Tensor& narrow, const LowRank& low_rank,
                    const AdapterScales& adapters);

/// y = x W^T + b.
struct Linear {
  Tensor weight;                      // (N, K)
  std::optional<Tensor> bias;         // (N) f32, of all rows
  std::vector<Tensor> more_segments;  // further rows of the weight, in other types
  /// The product is one of integers, where that pays (ops/quantize.h): x goes into it as q8_1, and
  /// is quantized where it does not come so. All weights are in blocks.
  bool integers = false;
  /// The weight's column i is multiplied with column column_order[i] of x: (K) u32. Goes with
  /// neither integers nor a norm.
  std::optional<Tensor> column_order = {};
  /// What is added to x W^T where scales are given. x must not be q8_1 then, nor have a norm.
  std::optional<LowRank> low_rank = {};

  /// x: (..., K); result: (..., N) of x's type (f32 for q8_1), or gated (..., N / 2). Throws
  /// ShapeError naming the layer.
  Tensor operator()(ProgramBuilder& builder, const Operand& x,
                    Activation activation = Activation::kNone, bool gated = false,
                    const AdapterScales* adapters = nullptr) const;
  Tensor operator()(ProgramBuilder& builder, const Operand& x,
                    const AdapterScales* adapters) const {
    return (*this)(builder, x, Activation::kNone, false, adapters);
  }
  /// The same without adapters, with columns of the result that may be rounded up
  /// (MatmulOptions::padded).
  Tensor padded(ProgramBuilder& builder, const Tensor& x) const;
  /// y += x W^T + b, in place. y: (..., N).
  void add_to(ProgramBuilder& builder, const Tensor& x, const Tensor& y,
              const AdapterScales* adapters = nullptr) const;
  /// Writes into `y`, (..., N), which may outlive the program.
  void write_to(ProgramBuilder& builder, const Tensor& x, const Tensor& y,
                const AdapterScales* adapters = nullptr) const;

 private:
  Tensor operand(ProgramBuilder& builder, const Tensor& x) const;
  void add_low_rank(ProgramBuilder& builder, const Tensor& x, const Tensor& y,
                    const AdapterScales& adapters) const;
};

}  // namespace mulciber
