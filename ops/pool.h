// Pools the states of a text into one state.
#pragma once

#include "ops/control.h"
#include "runtime/program.h"

namespace mulciber {

/// How the counted states are combined, column by column: the modes of sentence-transformers'
/// Pooling.
enum class PoolMode : uint32_t {
  kMean = 0,
  kMeanSqrtLength = 1,  // the sum over the square root of their number
  kWeightedMean = 2,    // position i, from 1, counts i times
  kMax = 3,
  kLast = 4,
};

/// x: (rows, length, columns) f32; counts: (rows), number of positions of each row that count, in
/// control. Result: (rows, columns) f32; zeros where no position counts. Throws ShapeError naming
/// the layer.
Tensor pool(ProgramBuilder& builder, const Tensor& x, const Tensor& control,
            const ControlArray<uint32_t>& counts, PoolMode mode);

}  // namespace mulciber
