// Activation functions in double precision.
#pragma once

#include "runtime/ops/matmul.h"

namespace mulciber::conformance {

double activation_reference(double x, Activation function);
/// "gelu_tanh", for the names of cases.
const char* name_of(Activation function);

}  // namespace mulciber::conformance
