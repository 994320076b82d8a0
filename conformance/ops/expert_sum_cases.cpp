// Cases and reference of expert_sum; conformance/op_cases.cpp declares the cases.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "conformance/bounds.h"
#include "conformance/op_case.h"
#include "mulciber/error.h"
#include "ops/experts.h"

namespace mulciber::conformance {
namespace {

struct ExpertSumExtents {
  uint64_t tokens, experts_per_token, columns;
};

OpCase expert_sum_case(const ExpertSumExtents& extents, bool normalize) {
  const auto [tokens, slots, columns] = extents;
  OpCase c;
  c.name = fmt::format("t{}_s{}_n{}", tokens, slots, columns);
  if (normalize) c.name += ".normalized";
  c.types = {DataType::kF32, DataType::kF32};
  c.must_pass = slots > 1 && columns > 1;
  c.inputs = {
      normal_input({tokens, slots, columns}, DataType::kF32),
      {{tokens, slots, 2}, DataType::kU32, [](std::vector<double>& words, std::mt19937& random) {
         std::uniform_real_distribution<float> share(0.05f, 0.95f);
         for (size_t i = 0; i < words.size(); i += 2) {
           words[i] = bits_of(std::log(share(random)));
           words[i + 1] = static_cast<double>(random() % 8);
         }
       }}};
  c.build = [=](ProgramBuilder& builder, std::span<const Tensor> inputs) {
    return std::vector<Tensor>{expert_sum(builder, inputs[0], inputs[1], normalize)};
  };
  const uint64_t each = slots, width = columns;
  c.reference = [=](std::span<const CpuTensor> inputs, const Arithmetic&) {
    CpuTensor y{{inputs[0].shape[0], width}, DataType::kF32, {}, {}};
    for (uint64_t i = 0; i < y.shape.elements(); ++i) {
      Bounded sum, gates;
      for (uint64_t slot = 0; slot < each; ++slot) {
        const uint64_t route = i / width * each + slot;
        const Bounded gate =
            exp(Bounded(std::bit_cast<float>(static_cast<uint32_t>(inputs[1].values[route * 2]))));
        sum = sum + gate * Bounded(inputs[0].values[route * width + i % width]);
        gates = gates + gate;
      }
      append(y, normalize ? sum / gates : sum);
    }
    return std::vector<CpuTensor>{y};
  };
  return c;
}

class ExpertSumCases : public OpCases {
 public:
  std::string shape_format() const override { return "tokens,experts_per_token,N"; }
  std::vector<std::vector<uint64_t>> bench_shapes() const override {
    return {{64, 4, 2048}, {512, 2, 4096}};
  }

  OpCase make(std::span<const uint64_t> shape, KernelTypes) const override {
    if (shape.size() != 3 || std::ranges::count(shape, uint64_t{0}) > 0)
      throw ShapeError("expert_sum", "a shape is three positive numbers",
                       "give tokens,experts_per_token,N such as 64,4,2048");
    return expert_sum_case({shape[0], shape[1], shape[2]}, true);
  }

  std::vector<OpCase> samples(KernelTypes) const override {
    std::vector<OpCase> cases;
    for (const ExpertSumExtents& extents :
         {ExpertSumExtents{1, 1, 1}, ExpertSumExtents{1, 2, 64}, ExpertSumExtents{5, 3, 37},
          ExpertSumExtents{9, 8, 130}, ExpertSumExtents{300, 2, 96}})
      for (const bool normalize : {false, true})
        cases.push_back(expert_sum_case(extents, normalize));
    return cases;
  }
};

}  // namespace

const OpCases& expert_sum_cases() {
  static const ExpertSumCases cases;
  return cases;
}

}  // namespace mulciber::conformance
