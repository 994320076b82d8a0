// Operands of products with exact results.
#pragma once

#include "conformance/op_case.h"

namespace mulciber::conformance {

/// The role of an operand in an exact product. To keep the result small although intermediate sums
/// are not, x repeats itself after half of K, and W almost changes its sign there.
enum class Part : uint8_t { kFree, kRepeated, kOpposed };

/// Odd numbers up to 99: sums of products are exact in f32 up to K = 1600, and mostly not in f16.
CaseInput whole_operand(Shape shape, DataType type, Part part);
/// Ones and twos: sums of sixteen products are exact in f16. With x repeated and W opposed,
/// half-way sums exceed the whole numbers of f16, and cancel.
CaseInput small_operand(Shape shape, DataType type, Part part);

}  // namespace mulciber::conformance
