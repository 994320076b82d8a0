// The conformance suite's verdicts on hand-made results, and what its bounds allow and forbid.
#include "conformance/compare.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "conformance/bounds.h"
#include "conformance/case_program.h"
#include "conformance/ops/product_reference.h"
#include "tests/catch.h"

using namespace mulciber;
using namespace mulciber::conformance;

namespace {

CpuTensor tensor(std::vector<double> values, std::vector<double> bounds = {},
                 DataType type = DataType::kF32) {
  return {Shape{1, values.size()}, type, std::move(values), std::move(bounds)};
}

Status verdict(std::vector<double> got, const CpuTensor& expected, Quality quality = {}) {
  return compare({to_bytes({expected.shape, expected.type, std::move(got), {}})}, {&expected, 1},
                 quality)
      .status;
}

std::vector<double> varied(size_t count, double step = 0.37) {
  std::vector<double> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = std::sin(1 + step * static_cast<double>(i)) * 3;
  return values;
}

// The sum of products that a kernel with 16-bit sums computes.
double half_sum(const double* x, const double* w, size_t n) {
  double sum = 0;
  for (size_t i = 0; i < n; ++i) sum = round_to(DataType::kF16, sum + x[i] * w[i]);
  return sum;
}

}  // namespace

TEST_CASE("A value passes within its bound, warns beyond the usual, and fails beyond the bound") {
  const CpuTensor expected = tensor({1, 2, 4}, {0.1, 0.1, 0.1});
  CHECK(verdict({1, 2, 4}, expected) == Status::kPass);
  CHECK(verdict({1.09, 2, 4}, expected) == Status::kPass);
  CHECK(verdict({1, 2, 4.11}, expected) == Status::kFail);
  // Row error: 0.09 / sqrt(1 + 4 + 16) = 0.0196.
  CHECK(verdict({1.09, 2, 4}, expected, {.row_error = 0.03}) == Status::kPass);
  CHECK(verdict({1.09, 2, 4}, expected, {.row_error = 0.01}) == Status::kQualityWarning);
  CHECK(verdict({1.09, 2, 4}, expected, {.nmse = 1e-3}) == Status::kPass);
  CHECK(verdict({1.09, 2, 4}, expected, {.nmse = 1e-4}) == Status::kQualityWarning);
  CHECK(verdict({1.2, 2, 4}, expected, {.row_error = 0.03}) == Status::kFail);
}

TEST_CASE("A single value is held to its bound alone") {
  const CpuTensor expected = tensor({1e-3}, {0.1});
  CHECK(verdict({2e-3}, expected, {.row_error = 0.01}) == Status::kPass);
  CHECK(verdict({0.2}, expected, {.row_error = 0.01}) == Status::kFail);
}

TEST_CASE("Each row of an output is judged by itself") {
  // The second row is a thousand times smaller: its error would vanish in the whole tensor's.
  CpuTensor expected = tensor({1000, 2000, 1, 2}, {1, 1, 1, 1});
  expected.shape = Shape{2, 2};
  CHECK(verdict({1000, 2000, 1.5, 2}, expected, {.row_error = 0.1}) == Status::kQualityWarning);
  CHECK(verdict({1000.5, 2000, 1, 2}, expected, {.row_error = 0.1}) == Status::kPass);
}

TEST_CASE("Without a bound a value must be met exactly") {
  const CpuTensor expected = tensor({3, -5, 0});
  CHECK(verdict({3, -5, 0}, expected) == Status::kPass);
  CHECK(verdict({3, -5, -0.0}, expected) == Status::kPass);
  CHECK(verdict({3, -5.0000005, 0}, expected) == Status::kFail);
  CHECK(verdict({7, 8}, tensor({7, 9}, {}, DataType::kU32)) == Status::kFail);
  CHECK(verdict({7, 9}, tensor({7, 9}, {}, DataType::kU32)) == Status::kPass);
  CHECK(verdict({3, 0.1}, tensor({3, 0}, {0, std::nan("")})) == Status::kFail);
  const CpuTensor ignored = tensor({3, 0}, {0, kInfinity});
  CHECK(verdict({3, 77}, ignored) == Status::kPass);
}

TEST_CASE("NaN and infinities pass only where they belong") {
  const double nan = std::nan("");
  CHECK(verdict({1, nan}, tensor({1, 2}, {0, 1e30})) == Status::kFail);
  CHECK(verdict({1, kInfinity}, tensor({1, 2}, {0, 1e30})) == Status::kFail);
  CHECK(verdict({1, nan}, tensor({1, nan}, {0, 0})) == Status::kPass);
  CHECK(verdict({1, 2}, tensor({1, nan}, {0, 0})) == Status::kFail);
  CHECK(verdict({-kInfinity}, tensor({-kInfinity}, {0})) == Status::kPass);
  CHECK(verdict({kInfinity}, tensor({-kInfinity}, {0})) == Status::kFail);
  CHECK(verdict({-1e30}, tensor({-kInfinity}, {0})) == Status::kFail);
  // 65510 is between the largest half and the first that rounds to infinity.
  CHECK(verdict({kInfinity}, tensor({65510}, {32}, DataType::kF16)) == Status::kPass);
  CHECK(verdict({kInfinity}, tensor({65000}, {32}, DataType::kF16)) == Status::kFail);
}

TEST_CASE("Failures name the element, both values and the bound") {
  const CpuTensor expected = tensor({1, 2, 4}, {0.1, 0.5, 0.1});
  const Comparison result =
      compare({to_bytes({expected.shape, expected.type, {1, 3, 4}, {}})}, {&expected, 1});
  CHECK(result.status == Status::kFail);
  CHECK(result.worst == Approx(2));
  CHECK(result.nmse == Approx(1.0 / 21));
  CHECK(result.detail.find("output 0 row 0 column 1: 3, expected 2 +- 0.5") == 0);
}

TEST_CASE("Values that cannot tell right from wrong are mistrusted") {
  const auto doubt = [](std::vector<double> in, std::vector<double> out,
                        DataType type = DataType::kF32) {
    const CpuTensor input = tensor(std::move(in)), output = tensor(std::move(out), {}, type);
    return why_mistrusted({&input, 1}, {&output, 1});
  };
  const std::vector<double> good = varied(100);
  CHECK(doubt(good, good) == "");
  CHECK(doubt(std::vector<double>(100, 0.0), good) == "input 0 is 100 % zeros");
  CHECK(doubt(good, std::vector<double>(100, 0.0)) == "expected output 0 is 100 % zeros");
  CHECK(doubt(std::vector<double>(100, 7.0), good) ==
        "100 % of input 0 have one magnitude: saturated, or constant");
  std::vector<double> saturated(100, 1.0), half_zero = good, overflown = good;
  for (size_t i = 0; i < 100; i += 2) saturated[i] = -1, half_zero[i] = 0;
  saturated[3] = 0.7;
  CHECK(doubt(good, saturated).find("99 % of expected output 0 have one magnitude") == 0);
  CHECK(doubt(good, half_zero) == "");  // ReLU gives such zeros
  overflown[50] = 1e5;
  CHECK(doubt(good, overflown) == "");
  CHECK(doubt(good, overflown, DataType::kF16) ==
        "expected output 0 is 1e+05 at element 50, which its type cannot hold");
  CHECK(doubt(good, {0, 0, 0}) == "");  // too few to judge
  // Large tensors are sampled, at no fixed step that a mask of every n-th element could have.
  for (size_t size : {12032, 20000}) {
    for (size_t nth : {2, 3, 5, 47}) {
      std::vector<double> masked = varied(size);
      for (size_t i = 0; i < size; i += nth) masked[i] = 0;
      CHECK(doubt(good, masked) == "");
    }
  }
}

TEST_CASE("A case said to be exact must have nothing to round") {
  const CpuTensor exact = tensor({1, 2}, {0, kInfinity}), inexact = tensor({1, 2}, {0, 1e-7});
  CHECK(why_inexact({&exact, 1}) == "");
  CHECK(why_inexact({&inexact, 1}) ==
        "said to be exact, but expected output 0 may be off by 1e-07 at element 1");
}

TEST_CASE(
    "Whole numbers have no bound, others one that a sum in f32 keeps and one in f16 does not") {
  const size_t depth = 512;
  const auto product = [&](std::vector<double> x, std::vector<double> w) {
    const CpuTensor xs = tensor(std::move(x)), ws = tensor(std::move(w));
    return Product(xs, ws, nullptr, {}).at(0, 0);
  };
  std::vector<double> whole(depth), others(depth), factors(depth);
  for (size_t i = 0; i < depth; ++i) {
    whole[i] = static_cast<double>(i % 13) - 6;
    others[i] = round_to(DataType::kF16, std::sin(0.7 * static_cast<double>(i)));
    factors[i] =
        round_to(DataType::kF16, std::cos(1.3 * static_cast<double>(i)) / std::sqrt(512.0));
  }
  CHECK(product(whole, whole).error == 0);
  CHECK(product(std::vector<double>(depth, 4095), std::vector<double>(depth, 4095)).error >
        0);  // beyond 2^24
  const Bounded sum = product(others, factors);
  float in_f32 = 0;
  for (size_t i = 0; i < depth; ++i) in_f32 += static_cast<float>(others[i] * factors[i]);
  CHECK(std::fabs(in_f32 - sum.value) <= sum.error);
  CHECK(std::fabs(half_sum(others.data(), factors.data(), depth) - sum.value) > sum.error);
  // A sum with one term too few is caught as well.
  CHECK(std::fabs(others[3] * factors[3]) > sum.error);
}

TEST_CASE("Matrix units may round operands to halves, and no more") {
  const size_t depth = 24;
  std::vector<double> x(depth), w(depth);
  for (size_t i = 0; i < depth; ++i) {
    x[i] = round_to(DataType::kF32, std::sin(0.7 * static_cast<double>(i) + 0.1));
    w[i] = round_to(DataType::kF16, std::cos(1.3 * static_cast<double>(i)) / 5);
  }
  const CpuTensor xs = tensor(x), ws = tensor(w, {}, DataType::kF16);
  const Bounded full = Product(xs, ws, nullptr, {}).at(0, 0);
  const Bounded half = Product(xs, ws, nullptr, {.half_operands = true}).at(0, 0);
  double rounded = 0;
  for (size_t i = 0; i < depth; ++i) rounded += round_to(DataType::kF16, x[i]) * w[i];
  CHECK(std::fabs(rounded - half.value) <= half.error);
  CHECK(std::fabs(rounded - full.value) > full.error);
  CHECK(half.error < 0.01);
}

TEST_CASE("Running errors hold what f32 arithmetic gives") {
  // Single operations whose arguments already have errors.
  for (double x : {-7.3, -0.4, 0.003, 0.9, 5.5, 60.0}) {
    const auto argument = static_cast<float>(x);
    INFO(x);
    const Bounded e = exp(Bounded(argument));
    CHECK(std::fabs(std::exp(argument) - e.value) <= e.error);
    CHECK(e.error < e.value * 2e-5);
    const Bounded t = conformance::tanh(Bounded(argument));
    CHECK(std::fabs(std::tanh(argument) - t.value) <= t.error);
    CHECK(t.error < 2e-6);
    const Bounded moved = exp(Bounded(argument, 1e-3));
    CHECK(std::fabs(std::exp(x + 1e-3) - moved.value) <= moved.error);
    for (Activation function : {Activation::kRelu, Activation::kGelu, Activation::kGeluTanh,
                                Activation::kSilu, Activation::kTanh, Activation::kQuickGelu}) {
      const Bounded exact = activation_reference(Bounded(argument), function);
      const Bounded near = activation_reference(Bounded(x + 0.9e-3), function);
      const Bounded wide = activation_reference(Bounded(x, 1e-3), function);
      CHECK(exact.error <= 1e-5 * std::fabs(x));
      CHECK(std::fabs(near.value - wide.value) <= wide.error + near.error);
    }
  }
  CHECK(stored_error(DataType::kF16, 2048, 0) == 0);
  CHECK(stored_error(DataType::kF16, 2049, 0) == 2);
  CHECK(stored_error(DataType::kF16, 1e-6, 0) == Approx(1e-6));  // may be flushed
  CHECK(stored_error(DataType::kF32, 1e-6f, 0) == 0);
}
