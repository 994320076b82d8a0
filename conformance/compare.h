// The verdict on what a device computed: against the double-precision reference with its bounds,
// row by row of every output. And the doubt about a case whose inputs cannot tell right from wrong.
#pragma once

#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "conformance/op_case.h"
#include "conformance/records/status.h"

namespace mulciber::conformance {

/// What results are expected to be, beyond what they must: kernels.def's tolerance
/// (root-mean-square error of a row over its root mean square; of results of more than one value),
/// and the normalized mean square error that others state.
struct Quality {
  double row_error = std::numeric_limits<double>::infinity();
  double nmse = std::numeric_limits<double>::infinity();
};
/// What a row of kernels.def is held to; no row: nothing.
Quality quality_of(const Kernel* row);

struct Comparison {
  /// kFail: an element is off by more than its bound. kQualityWarning: none is, and the quality is
  /// missed.
  Status status = Status::kPass;
  double worst = 0;  // largest error over its bound; infinite where the bound is 0
  /// The element of `worst` with both values, or the row that misses the quality.
  std::string detail;
  double nmse = 0;  // squared error over squared expected values, over all outputs
};

/// `got`: one byte array per output. NaN passes only where NaN is expected, an infinity where that
/// infinity is, or where the value is within its bound of what the type cannot hold.
Comparison compare(const std::vector<std::vector<std::byte>>& got,
                   std::span<const HostTensor> expected, const Quality& quality = {});

/// Why a comparison with these values says little, or "": an input or output that is mostly zero or
/// all but constant, a saturated activation, a result that its type cannot hold, bounds as wide as
/// the results. Looks at floats only, and at tensors of 8 elements and more.
std::string why_mistrusted(std::span<const HostTensor> inputs,
                           std::span<const HostTensor> expected);

/// The first value of a case said to be exact whose bound is not 0, or "".
std::string why_inexact(std::span<const HostTensor> expected);

}  // namespace mulciber::conformance
