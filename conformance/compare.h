// Comparison of what a device computed with the double-precision reference, row by row.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "conformance/op_case.h"

namespace mulciber::conformance {

struct Comparison {
  double worst = 0;    // largest root-mean-square error of an output row over its tolerance; passes up to 1
  std::string detail;  // the worst element, with both values
  double nmse = 0;     // squared error over squared expected values, over all outputs
};

/// `got`: one byte array per output. NaN passes only where NaN is expected, words only when equal.
Comparison compare(const std::vector<std::vector<std::byte>>& got, const std::vector<HostTensor>& expected,
                   double tolerance);

}  // namespace mulciber::conformance
