// The verdict on a device's results: they are compared with the double-precision reference within
// its bounds, for each row of every output. Also detects cases whose inputs make a check
// meaningless.
#pragma once

#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "conformance/op_case.h"
#include "conformance/records/status.h"

namespace mulciber::conformance {

/// Expected quality of results, beyond their bounds: the tolerance of kernels.def (root-mean-square
/// error of a row over its root mean square, for results of more than one value), and the
/// normalized mean square error that other projects use.
struct Quality {
  double row_error = std::numeric_limits<double>::infinity();
  double nmse = std::numeric_limits<double>::infinity();
};
/// The expected quality for a row of kernels.def; without a row nothing is expected.
Quality quality_of(const Kernel* row);

struct Comparison {
  /// kFail: an element's error exceeds its bound. kQualityWarning: none does, but the quality is
  /// missed.
  Status status = Status::kPass;
  double worst = 0;  // largest error over its bound; infinite where the bound is 0
  /// The element of `worst` with both values, or the row that misses the quality.
  std::string detail;
  double nmse = 0;  // squared error over squared expected values, over all outputs
};

/// `got`: one byte array per output. NaN passes only where NaN is expected. An infinity passes
/// where that infinity is expected, or where the type cannot hold the value plus its bound.
Comparison compare(const std::vector<std::vector<std::byte>>& got,
                   std::span<const CpuTensor> expected, const Quality& quality = {});

/// The reason why a comparison with these values says little, or "": an input or output that is
/// mostly zero or almost constant, a saturated activation, a result that its type cannot hold,
/// bounds as large as the results. Checks only floats, in tensors of 8 elements or more.
std::string why_mistrusted(std::span<const CpuTensor> inputs, std::span<const CpuTensor> expected);

/// The first value with a nonzero bound in a case that claims to be exact, or "".
std::string why_inexact(std::span<const CpuTensor> expected);

}  // namespace mulciber::conformance
