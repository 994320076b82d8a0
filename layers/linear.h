// An affine map of the last dimension.
#pragma once

#include <optional>
#include <vector>

#include "ops/control.h"
#include "ops/matmul.h"

namespace mulciber {

/// The input of a product: x, or x with a norm that the product applies itself.
struct Operand {
  Operand(const Tensor& of) : x(of) {}  // NOLINT(google-explicit-constructor): mostly just x
  Operand(const Tensor& of, const RowNorm& by) : x(of), norm(by) {}

  Tensor x;
  std::optional<RowNorm> norm;
};

/// Low-rank adapters of a product; any mix of them costs the same. t = x A^T; each of its numbers
/// is multiplied by the scale that the row of the batch has for the adapter; then y += t B^T. A and
/// B hold all adapters side by side; a scale of 0 turns an adapter off. Where the weight has
/// several parts (rows below rows) that were adapted separately, A holds the parts' matrices one
/// below the other, and B is zero outside of a part's own columns.
/// Source: Hu et al. 2021, arXiv:2106.09685; of many at once Sheng et al. 2023, arXiv:2311.03285.
struct LowRank {
  Tensor down;         // A: (parts * count, K)
  Tensor up;           // B: (N, parts * count)
  uint32_t first = 0;  // first of a row's scales that belong to these adapters
  uint32_t count = 0;  // number of these scales, equal for every part
};

/// Scales of adapters in control.
struct AdapterScales {
  Tensor control;
  ControlArray<float> scales;  // (rows of the batch, per_row)
  uint32_t per_row = 0;
};

/// Multiplies the result of A, (..., parts * count), by the scale that each row has for each
/// adapter.
Tensor scale_narrow(ProgramBuilder& builder, const Tensor& narrow, const LowRank& low_rank,
                    const AdapterScales& adapters);

/// Computes y = x W^T + b.
struct Linear {
  Tensor weight;                      // (N, K)
  std::optional<Tensor> bias;         // (N) f32, for all rows of the weight
  std::vector<Tensor> more_segments;  // further rows of the weight, in other types
  /// Whether the product uses integers, where that pays (ops/quantize.h): its input is q8_1,
  /// quantized here if it is not yet. All weights are in blocks.
  bool integers = false;
  /// The weight's column i is multiplied with column column_order[i] of x: (K) u32. Excludes
  /// integers and a norm.
  std::optional<Tensor> column_order = {};
  /// Added to x W^T where scales are given. x must then neither be q8_1 nor have a norm.
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
  /// Applies the map without adapters; columns of the result may be rounded up
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
