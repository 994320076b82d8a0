// Names of activation functions. (Their definition: conformance/bounds.h.)
#pragma once

#include "ops/matmul.h"

namespace mulciber::conformance {

/// "gelu_tanh", for the names of cases.
const char* name_of(Activation function);

}  // namespace mulciber::conformance
