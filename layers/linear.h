// An affine map of the last dimension.
#pragma once

#include <optional>
#include <vector>

#include "ops/matmul.h"

namespace mulciber {

/// What a product takes: x, or what it makes of x by a norm of its own.
struct Operand {
  Operand(const Tensor& of) : x(of) {}  // NOLINT(google-explicit-constructor): mostly just x
  Operand(const Tensor& of, const RowNorm& by) : x(of), norm(by) {}

  Tensor x;
  std::optional<RowNorm> norm;
};

/// y = x W^T + b.
struct Linear {
  Tensor weight;                      // (N, K)
  std::optional<Tensor> bias;         // (N) f32, of all rows
  std::vector<Tensor> more_segments;  // further rows of the weight, in other types
  /// The product is one of integers, where that pays (ops/quantize.h): x goes into it as q8_1, and
  /// is quantized where it does not come so. All weights are in blocks.
  bool integers = false;

  /// x: (..., K); result: (..., N) of x's type (f32 for q8_1), or gated (..., N / 2). Throws
  /// ShapeError naming the layer.
  Tensor operator()(ProgramBuilder& builder, const Operand& x,
                    Activation activation = Activation::kNone, bool gated = false) const;
  /// The same, with columns of the result that may be rounded up (MatmulOptions::padded).
  Tensor padded(ProgramBuilder& builder, const Tensor& x) const;
  /// y += x W^T + b, in place. y: (..., N).
  void add_to(ProgramBuilder& builder, const Tensor& x, const Tensor& y) const;
  /// Writes into `y`, (..., N), which may outlive the program.
  void write_to(ProgramBuilder& builder, const Tensor& x, const Tensor& y) const;

 private:
  Tensor operand(ProgramBuilder& builder, const Tensor& x) const;
};

}  // namespace mulciber
