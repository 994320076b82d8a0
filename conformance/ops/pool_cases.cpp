// Cases and reference of pool; conformance/op_cases.cpp declares the cases.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "conformance/bounds.h"
#include "conformance/op_case.h"
#include "mulciber/error.h"
#include "ops/pool.h"

namespace mulciber::conformance {
namespace {

constexpr PoolMode kPoolModes[] = {PoolMode::kMean, PoolMode::kMeanSqrtLength,
                                   PoolMode::kWeightedMean, PoolMode::kMax, PoolMode::kLast};

struct PoolVariant {
  uint64_t rows = 1, length = 1, columns = 1;
  PoolMode mode = PoolMode::kMean;
  bool exact = false;
};

/// Number of positions of a row that count: all, fewer and fewer, none, and more than exist.
uint32_t pool_count(const PoolVariant& v, uint64_t row) {
  if (v.rows > 1 && row + 1 == v.rows) return static_cast<uint32_t>(v.length + 7);
  return static_cast<uint32_t>(v.length - std::min(v.length, row * 2));
}

OpCase pool_case(const PoolVariant& v) {
  static const char* const kNames[] = {"mean", "root", "weighted", "max", "last"};
  OpCase c;
  c.name = fmt::format("{}.r{}_l{}_c{}", kNames[static_cast<size_t>(v.mode)], v.rows, v.length,
                       v.columns);
  if (v.exact) c.name += ".exact";
  // Maximum and last state are not rounded; the other modes are exact for a text of one token.
  c.exact = v.exact;
  std::vector<uint32_t> counts;
  for (uint64_t row = 0; row < v.rows; ++row) counts.push_back(pool_count(v, row));
  ControlWords control(3, 0xffffffff);
  const ControlArray<uint32_t> array = control.append(counts);
  const Shape shape = {v.rows, v.length, v.columns};
  c.inputs = {
      v.exact ? whole_input(shape, DataType::kF32, 99) : normal_input(shape, DataType::kF32),
      words_input(control.words())};
  c.build = [=](ProgramBuilder& builder, std::span<const Tensor> inputs) {
    return std::vector<Tensor>{pool(builder, inputs[0], inputs[1], array, v.mode)};
  };
  c.reference = [=](std::span<const CpuTensor> inputs, const Arithmetic&) {
    CpuTensor y{{v.rows, v.columns}, DataType::kF32, {}, {}};
    for (uint64_t row = 0; row < v.rows; ++row) {
      const uint64_t count = std::min<uint64_t>(counts[row], v.length);
      const auto n = static_cast<double>(count);
      for (uint64_t column = 0; column < v.columns; ++column) {
        const auto state = [&](uint64_t i) {
          return inputs[0].values[(row * v.length + i) * v.columns + column];
        };
        if (count == 0) {
          append(y, Bounded(0));
          continue;
        }
        if (v.mode == PoolMode::kLast) {
          append(y, Bounded(state(count - 1)));
          continue;
        }
        double largest = -kInfinity, sum = 0, magnitude = 0, weights = 0;
        for (uint64_t i = 0; i < count; ++i) {
          const double weight =
              v.mode == PoolMode::kWeightedMean ? static_cast<double>(i + 1) : 1.0;
          largest = std::max(largest, state(i));
          sum += weight * state(i);
          magnitude += std::abs(weight * state(i));
          weights += weight;
        }
        if (v.mode == PoolMode::kMax) {
          append(y, Bounded(largest));
          continue;
        }
        // Products of a weight and a state are rounded, and so is every sum.
        const Bounded total(sum, v.exact ? 0 : sum_error(n + 1, magnitude));
        if (v.mode == PoolMode::kMeanSqrtLength)
          append(y, total * inverse_sqrt(Bounded(n)) * Bounded(1, 0x1p-22));
        else
          append(y, v.exact ? Bounded(sum / weights) : total / Bounded(weights));
      }
    }
    return std::vector<CpuTensor>{y};
  };
  return c;
}

class PoolCases : public OpCases {
 public:
  std::string shape_format() const override { return "rows,length,columns"; }
  std::vector<std::vector<uint64_t>> bench_shapes() const override {
    return {{32, 64, 384}, {8, 256, 768}};
  }
  bool exact(KernelTypes) const override { return true; }
  OpCase make(std::span<const uint64_t> shape, KernelTypes) const override {
    if (shape.size() != 3 || std::ranges::count(shape, uint64_t{0}) > 0) {
      throw ShapeError("pool", "a shape is three positive numbers",
                       "give rows,length,columns such as 32,64,384");
    }
    return pool_case({.rows = shape[0], .length = shape[1], .columns = shape[2]});
  }
  std::vector<OpCase> kinds(std::span<const uint64_t> shape, KernelTypes) const override {
    std::vector<OpCase> cases;
    for (const PoolMode mode : kPoolModes)
      cases.push_back(pool_case({shape[0], shape[1], shape[2], mode}));
    return cases;
  }
  std::vector<OpCase> samples(KernelTypes) const override {
    std::vector<OpCase> cases;
    for (const PoolMode mode : kPoolModes) {
      cases.push_back(pool_case({.mode = mode}));
      cases.push_back(pool_case({1, 7, 1, mode}));
      cases.push_back(pool_case({3, 1, 13, mode}));
      cases.push_back(pool_case({6, 8, 65, mode}));
      cases.push_back(pool_case({2, 131, 48, mode}));
      cases.push_back(pool_case({9, 12, 384, mode}));
      if (mode == PoolMode::kMax || mode == PoolMode::kLast)
        cases.push_back(pool_case({6, 9, 31, mode, true}));
    }
    return cases;
  }
};

}  // namespace

const OpCases& pool_cases() {
  static const PoolCases cases;
  return cases;
}

}  // namespace mulciber::conformance
