// Convolutions of width 3 over a sequence, as products over its windows.
#pragma once

#include <span>
#include <vector>

#include "layers/linear.h"

namespace mulciber {

/// Unfolds the windows of a convolution of width 3 and stride 2 (im2col): one row per window, with
/// a row of zeros before the sequence. x: (length, D), length even; result: (length / 2, 3 D): row
/// t holds rows 2 t - 1, 2 t and 2 t + 1 of x. Throws ShapeError naming the layer.
Tensor unfold_by_twos(ProgramBuilder& builder, const Tensor& x);

/// Unfolds the windows of stride 1 on the CPU, with zeros before and after the sequence. x:
/// (length, columns) row-major; result: (length, 3 columns).
std::vector<float> unfold_by_ones(std::span<const float> x, size_t columns);

/// Returns add + gelu(windows W^T + b). windows: (length, 3 D); add: (length, N) or none; result:
/// (length, N).
Tensor convolve(ProgramBuilder& builder, const Linear& product, const Tensor& windows,
                const std::optional<Tensor>& add = std::nullopt);

}  // namespace mulciber
