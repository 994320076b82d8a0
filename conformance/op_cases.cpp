// The cases of every op of shaders/ops.def: an op without a defined NAME_cases() does not link.
#include "conformance/op_case.h"

namespace mulciber::conformance {

#define OP(ENUMERATOR, NAME, SUMMARY) const OpCases& NAME##_cases();
#include "shaders/ops.def"

const OpCases& op_cases(Op op) {
  static constexpr const OpCases& (*kCases[])() = {
#define OP(ENUMERATOR, NAME, SUMMARY) NAME##_cases,
#include "shaders/ops.def"
  };
  return kCases[static_cast<size_t>(op)]();
}

}  // namespace mulciber::conformance
