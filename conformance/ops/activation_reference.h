// Names of activation functions. conformance/bounds.h defines the functions.
#pragma once

#include "ops/matmul.h"

namespace mulciber::conformance {

/// "gelu_tanh", for the names of cases.
const char* name_of(Activation function);

}  // namespace mulciber::conformance
