// Cases of whole blocks over layers/: attention, feed-forward, encoder and decoder layers.
// Selection chooses the kernels, so that a test runs what a model runs.
#pragma once

#include <vector>

#include "conformance/op_case.h"

namespace mulciber::conformance {

/// types: for activations, and for weights and caches.
std::vector<OpCase> block_cases(KernelTypes types);

}  // namespace mulciber::conformance
