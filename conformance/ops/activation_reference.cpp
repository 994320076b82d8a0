#include "conformance/ops/activation_reference.h"

namespace mulciber::conformance {

const char* name_of(Activation function) {
  switch (function) {
    case Activation::kNone: return "none";
    case Activation::kRelu: return "relu";
    case Activation::kGelu: return "gelu";
    case Activation::kGeluTanh: return "gelu_tanh";
    case Activation::kSilu: return "silu";
    case Activation::kTanh: return "tanh";
    case Activation::kQuickGelu: return "quick_gelu";
  }
  return "?";
}

}  // namespace mulciber::conformance
