// One state for a whole text.
#pragma once

#include "ops/control.h"
#include "runtime/program.h"

namespace mulciber {

/// Of the states that count, column by column. As sentence-transformers' Pooling has them.
enum class PoolMode : uint32_t {
  kMean = 0,
  kMeanSqrtLength = 1,  // the sum over the square root of their number
  kWeightedMean = 2,    // position i, from 1, counts i times
  kMax = 3,
  kLast = 4,
};

/// x: (rows, length, columns) f32; counts: (rows), positions of each row that count, in control.
/// Result: (rows, columns) f32; zeros where none counts. Throws ShapeError naming the layer.
Tensor pool(ProgramBuilder& builder, const Tensor& x, const Tensor& control,
            const ControlArray<uint32_t>& counts, PoolMode mode);

}  // namespace mulciber
