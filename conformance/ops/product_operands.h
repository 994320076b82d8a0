// Operands of products that come out exactly.
#pragma once

#include "conformance/op_case.h"

namespace mulciber::conformance {

/// Which part of an exact product an operand is. Where the result must be small though the sums on
/// the way are not, x repeats itself after half of K, and W nearly changes its sign there.
enum class Part : uint8_t { kFree, kRepeated, kOpposed };

/// Odd numbers up to 99: sums of products are exact in f32 up to K = 1600, and most are not in f16.
CaseInput whole_operand(Shape shape, DataType type, Part part);
/// Ones and twos: sums of sixteen products are exact in f16. The sums of x repeated with W opposed
/// pass its whole numbers half way, and cancel.
CaseInput small_operand(Shape shape, DataType type, Part part);

}  // namespace mulciber::conformance
