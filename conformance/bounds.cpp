#include "conformance/bounds.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace mulciber::conformance {
namespace {

constexpr double kLambda = 8;
constexpr double kHopeless = 1e300;  // a bound without information, which compare.cpp detects
// Whether f32 represents the number exactly.
bool in_f32(double value) { return static_cast<double>(static_cast<float>(value)) == value; }

double ulp(double value, int mantissa_bits, int least_exponent) {
  if (!std::isfinite(value)) return 0;
  const int exponent = value == 0 ? least_exponent : std::max(std::ilogb(value), least_exponent);
  return std::ldexp(1.0, exponent - mantissa_bits);
}

// The result of one correctly rounded f32 operation.
Bounded rounded(double value, double error) {
  if (!std::isfinite(value)) return {value, 0};
  if (error == 0 && in_f32(value) && (value == 0 || std::fabs(value) >= kSmallest32))
    return {value, 0};
  return {value, error + stored_error(DataType::kF32, value, error)};
}

// exp(v) with relative error `relative`, and the growth of an error of the argument.
double grown(double value, double argument_error, double relative) {
  return value * (std::expm1(std::min(argument_error, 700.0)) * (1 + relative) + relative);
}

// The error function: 4e-7 is the accuracy of 32-bit fits (Abramowitz and Stegun 1964, 7.1.26 has
// 1.5e-7 besides its roundings); its slope is at most 1.13.
Bounded erf(Bounded x) {
  const double value = std::erf(x.value);
  const double own = std::min(4e-7, 8 * std::fabs(x.value) * 0x1p-23);
  // The slope at the argument nearest to 0 within the error.
  const double nearest = std::max(0.0, std::fabs(x.value) - x.error);
  return {value, own + x.error * 1.1283792 * std::exp(-nearest * nearest)};
}

}  // namespace

double largest_of(DataType type) {
  switch (type) {
    case DataType::kF16: return 65504;
    case DataType::kU32: return std::numeric_limits<uint32_t>::max();
    default: return std::numeric_limits<float>::max();
  }
}

double ulp32(double value) { return ulp(value, 23, -126); }
double ulp16(double value) { return ulp(value, 10, -14); }

double stored_error(DataType type, double value, double error) {
  if (type == DataType::kU32 || !std::isfinite(value)) return 0;
  const double smallest = type == DataType::kF16 ? kSmallest16 : kSmallest32;
  const double reach = std::fabs(value) + error;
  if (error == 0 && (value == 0 || std::fabs(value) >= smallest) && round_to(type, value) == value)
    return 0;
  // bf16 has 16 bits fewer than f32.
  const double step = type == DataType::kF16    ? ulp16(reach)
                      : type == DataType::kBF16 ? 0x1p16 * ulp32(reach)
                                                : ulp32(reach);
  return std::fabs(value) - error < smallest ? std::max(step, std::min(reach, smallest)) : step;
}

double sum_error(double terms, double magnitude) {
  return std::min(terms, kLambda * std::sqrt(terms)) * 0x1p-24 * magnitude;
}

double independent_errors(double sum, double sum_of_squares) {
  return std::min(sum, kLambda * std::sqrt(sum_of_squares));
}

double grain_of(std::span<const double> values) {
  double grain = kInfinity;
  for (double value : values) {
    if (value == 0 || !std::isfinite(value)) continue;
    const uint64_t mantissa = std::bit_cast<uint64_t>(value) & 0xfffffffffffffull;
    const int zeros = mantissa == 0 ? 52 : std::countr_zero(mantissa);
    grain = std::min(grain, std::ldexp(1.0, std::ilogb(value) - 52 + zeros));
    if (grain < 0x1p-60) break;  // sums this small need not be exact
  }
  return grain;
}

bool sums_exactly(double grain, double magnitude) {
  return magnitude == 0 || (std::isfinite(magnitude) && magnitude <= 0x1p24 * grain);
}

Bounded operator+(Bounded a, Bounded b) { return rounded(a.value + b.value, a.error + b.error); }
Bounded operator-(Bounded a, Bounded b) { return rounded(a.value - b.value, a.error + b.error); }

Bounded operator*(Bounded a, Bounded b) {
  return rounded(a.value * b.value,
                 a.error * std::fabs(b.value) + b.error * std::fabs(a.value) + a.error * b.error);
}

Bounded operator/(Bounded a, Bounded b) {
  const double value = a.value / b.value;
  const double least = std::fabs(b.value) - b.error;
  if (!(least > 0)) return {value, std::isfinite(value) ? kHopeless : 0};
  const double error = (a.error + std::fabs(value) * b.error) / least;
  // A quotient below the normal numbers may be flushed to zero.
  const double flushed = stored_error(DataType::kF32, value, error);
  return {value, error + std::max(2.5 * ulp32(std::fabs(value) + error), flushed)};
}

Bounded exp(Bounded x) {
  const double value = std::exp(x.value);
  if (x.value == -kInfinity) return 0;
  const double relative = (3 + 2 * (std::fabs(x.value) + x.error)) * 0x1p-23;
  return {value, grown(value, x.error, relative) + kSmallest32};
}

Bounded log(Bounded x) {
  const double value = std::log(x.value);
  const double least = x.value - x.error;
  if (!(least > 0)) return {value, std::isfinite(value) ? kHopeless : 0};
  const double moved = std::log(x.value / least);
  const double own = x.value > 0.5 && x.value < 2 ? 0x1p-21 : 3 * ulp32(std::fabs(value) + moved);
  return {value, moved + own};
}

Bounded inverse_sqrt(Bounded x) {
  const double value = 1 / std::sqrt(x.value);
  const double least = x.value - x.error;
  if (!(least > 0)) return {value, kHopeless};
  const double moved = 1 / std::sqrt(least) - value;
  return {value, moved + 2 * ulp32(value + moved)};
}

Bounded pow(Bounded x, Bounded y) {
  const double value = std::pow(x.value, y.value);
  Bounded logarithm = log(x);
  const Bounded exponent = y * Bounded(logarithm.value, logarithm.error);
  const double relative = (3 + 2 * std::fabs(exponent.value)) * 0x1p-23;
  return {value, grown(value, exponent.error, relative)};
}

Bounded max(Bounded a, Bounded b) {
  return {std::max(a.value, b.value), std::max(a.error, b.error)};
}

// tanh may have the larger of two errors: that of (1 - e) / (1 + e) with e = exp(-2 |x|), where it
// does not cancel, or that of a quotient of two polynomials: three units in the last place of each,
// and one of its own.
Bounded tanh(Bounded x) {
  const double value = std::tanh(x.value), size = std::fabs(x.value);
  const double slope = 1 - std::pow(std::tanh(std::max(0.0, size - x.error)), 2);
  double own = 8 * ulp32(value);
  if (size >= 0.25) {
    const Bounded e = exp(Bounded(-2 * size));
    own = std::max(own, ((Bounded(1) - e) / (Bounded(1) + e)).error);
  }
  return {value, own + x.error * slope};
}

namespace {

/// Returns x sigmoid(y).
Bounded times_sigmoid(Bounded x, Bounded y) {
  // exp(80) acts like infinity here but is finite.
  const Bounded e = exp(Bounded(std::min(-y.value, 80.0), y.error));
  const Bounded result = x / (Bounded(1) + e);
  if (y.value < -80) return {0, 2 * std::fabs(result.value) + result.error};
  return result;
}

}  // namespace

Bounded activation_reference(Bounded x, Activation function) {
  switch (function) {
    case Activation::kNone: return x;
    case Activation::kRelu: return {std::max(x.value, 0.0), x.value + x.error > 0 ? x.error : 0};
    case Activation::kGelu: {
      const Bounded half = Bounded(0.5) * x,
                    shift = Bounded(1) + erf(x * Bounded(std::sqrt(0.5), 0x1p-24));
      return {0.5 * x.value * std::erfc(-x.value * std::sqrt(0.5)), (half * shift).error};
    }
    case Activation::kGeluTanh: {
      const Bounded cubic = Bounded(0.044715, 0x1p-28) * x * x * x;
      const Bounded inner = Bounded(std::sqrt(2 / M_PI), 0x1p-24) * (x + cubic);
      return Bounded(0.5) * x * (Bounded(1) + tanh(inner));
    }
    case Activation::kSilu: return times_sigmoid(x, x);
    case Activation::kTanh: return tanh(x);
    case Activation::kQuickGelu: return times_sigmoid(x, Bounded(1.702, 0x1p-24) * x);
  }
  return x;
}

void append(CpuTensor& output, Bounded result) {
  output.values.push_back(0);
  output.bounds.push_back(0);
  put(output, output.values.size() - 1, result);
}

void put(CpuTensor& output, size_t index, Bounded result) {
  output.values[index] = result.value;
  output.bounds[index] = result.error;
  // A value that already has an error was rounded to f32 by the operation that computed it.
  if (output.type == DataType::kF16 || result.error == 0) {
    output.bounds[index] += stored_error(output.type, result.value, result.error);
  }
}

void cap_bounds(std::vector<CpuTensor>& outputs, double share) {
  for (CpuTensor& output : outputs) {
    double squares = 0;
    for (double value : output.values) squares += value * value;
    const double cap =
        share * std::sqrt(squares / static_cast<double>(std::max<size_t>(1, output.values.size())));
    for (double& bound : output.bounds) bound = bound < cap ? bound : cap;  // NaN is capped too
  }
}

}  // namespace mulciber::conformance
