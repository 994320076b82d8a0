// Cases of whole blocks over layers/: attention, feed-forward, encoder and decoder layers.
// Selection chooses the kernels, so that what a model runs is what is tested.
#pragma once

#include <vector>

#include "conformance/op_case.h"

namespace mulciber::conformance {

/// types: of activations, and of weights and caches.
std::vector<OpCase> block_cases(KernelTypes types);

}  // namespace mulciber::conformance
