// Bounds on the error of a device's number, derived from the operations between the inputs and the
// number. Nothing here is fitted to a driver's results.
//
// Precision of single operations: Vulkan specification, appendix "Vulkan Environment for SPIR-V",
// "Precision of Individual Operations". "Correctly rounded" is either neighbour there, so one
// operation may be off by a whole unit in the last place. Long sums: Higham and Mary 2019, "A New
// Approach to Probabilistic Rounding Error Analysis", doi:10.1137/18M1226312.
#pragma once

#include <limits>
#include <span>

#include "conformance/op_case.h"
#include "ops/matmul.h"

namespace mulciber::conformance {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
/// Magnitude below which a result may be flushed to zero.
inline constexpr double kSmallest32 = 0x1p-126, kSmallest16 = 0x1p-14;
/// Largest finite number of a type.
double largest_of(DataType type);

/// Distance of neighbouring f32 (f16) numbers at `value`.
double ulp32(double value);
double ulp16(double value);

/// Error that rounding `value`, known to `error`, to a storage type may add: 0 where the type
/// represents the number exactly. A result below the normal numbers may be flushed to zero.
double stored_error(DataType type, double value, double error);

/// Error of a sum of `terms` products in f32, in any order, whose magnitudes add up to `magnitude`:
/// min(n, lambda sqrt(n)) 2^-24 magnitude. With lambda = 8 a correct device exceeds the second form
/// for one sum in 2^46 at most, roundings being independent; the first form holds always.
double sum_error(double terms, double magnitude);
/// Bound on a sum of independent errors of mean zero, none above its own bound: the smaller of
/// their plain sum and lambda sqrt(sum of squares) (Hoeffding's inequality).
double independent_errors(double sum, double sum_of_squares);

/// The largest power of two that divides every value (infinite where all are 0): sums of multiples
/// of a grain whose magnitudes add up to 2^24 grains at most are exact in f32, in any order.
double grain_of(std::span<const double> values);
bool sums_exactly(double grain, double magnitude);

/// A number with a bound on its error, computed like the device computes, operation by operation.
struct Bounded {
  double value = 0, error = 0;

  Bounded() = default;
  Bounded(double exact) : value(exact) {}  // NOLINT: constants mix freely
  Bounded(double v, double e) : value(v), error(e) {}
};
Bounded operator+(Bounded a, Bounded b);
Bounded operator-(Bounded a, Bounded b);
Bounded operator*(Bounded a, Bounded b);
Bounded operator/(Bounded a, Bounded b);  // 2.5 ULP
Bounded exp(Bounded x);                   // 3 + 2 |x| ULP
Bounded log(Bounded x);                   // 3 ULP; 2^-21 between 0.5 and 2
Bounded inverse_sqrt(Bounded x);          // 2 ULP
Bounded pow(Bounded x, Bounded y);        // exp2(y log2(x))
/// The larger of two bounded numbers.
Bounded max(Bounded a, Bounded b);
Bounded tanh(Bounded x);
Bounded activation_reference(Bounded x, Activation function);

/// Appends a value and its bound to an output, including the rounding to its type.
void append(CpuTensor& output, Bounded result);
/// Writes a value and its bound at an index; values and bounds already have their size.
void put(CpuTensor& output, size_t index, Bounded result);
/// Lowers bounds to a share of the root mean square of their tensor. For whole blocks, where the
/// worst cases of all operations add up to far more than real roundings.
void cap_bounds(std::vector<CpuTensor>& outputs, double share);

}  // namespace mulciber::conformance
