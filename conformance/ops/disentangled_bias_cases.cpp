// Cases and reference of disentangled_bias; conformance/op_cases.cpp declares the cases.
#include <fmt/format.h>

#include <algorithm>

#include "conformance/bounds.h"
#include "conformance/op_case.h"
#include "mulciber/error.h"
#include "ops/disentangled.h"

namespace mulciber::conformance {
namespace {

constexpr uint64_t kDisentangledSpare = 5;  // columns after queries and keys

struct DisentangledVariant {
  uint32_t rows = 1, length = 1, heads = 1, size = 1, distances = 2;
  bool to_position = true, to_content = true;
  bool exact = false;
};

OpCase disentangled_bias_case(const DisentangledVariant& v) {
  OpCase c;
  c.name = fmt::format("r{}_l{}_h{}_s{}_t{}", v.rows, v.length, v.heads, v.size, v.distances);
  if (!v.to_position) c.name += ".p2c";
  if (!v.to_content) c.name += ".c2p";
  if (v.exact) c.name += ".exact";
  c.exact = v.exact;
  const uint64_t width = uint64_t{v.heads} * v.size, columns = 2 * width + kDisentangledSpare;
  ControlWords control(3, 0xffffffff);
  std::vector<uint32_t> row_of, counts;
  for (uint32_t i = 0; i + 1 < 2 * v.length; ++i)
    row_of.push_back(std::min(i * v.distances / (2 * v.length - 1), v.distances - 1));
  for (uint32_t row = 0; row < v.rows; ++row) counts.push_back(v.length - row % v.length);
  DisentangledOptions options{.heads = v.heads,
                              .head_size = v.size,
                              .scale = v.exact ? 0.25f : 0.1f,
                              .content_to_position = v.to_position,
                              .position_to_content = v.to_content};
  options.row_of = control.append(row_of);
  options.key_counts = control.append(counts);
  const auto input = [&](Shape shape) {
    return v.exact ? whole_input(shape, DataType::kF32, 7) : normal_input(shape, DataType::kF32);
  };
  c.inputs = {input({v.rows, v.length, columns}), input({v.distances, columns}),
              words_input(control.words())};
  const uint64_t pairs = uint64_t{v.rows} * v.heads * v.length * v.length;
  c.build = [=](ProgramBuilder& builder, std::span<const Tensor> inputs) {
    DisentangledOptions of_case = options;
    of_case.control = inputs[2];
    const Tensor y = disentangled_bias(builder, inputs[0], inputs[1], of_case).tensor;
    return std::vector<Tensor>{words_of(y, DataType::kF32, 0, pairs),
                               words_of(y, DataType::kU32, pairs, v.rows)};
  };
  c.reference = [=](std::span<const CpuTensor> inputs, const Arithmetic&) {
    CpuTensor y{{pairs}, DataType::kF32, {}, {}};
    for (uint64_t row = 0; row < v.rows; ++row)
      for (uint64_t head = 0; head < v.heads; ++head)
        for (uint64_t i = 0; i < v.length; ++i)
          for (uint64_t j = 0; j < v.length; ++j) {
            const double* q = &inputs[0].values[(row * v.length + i) * columns + head * v.size];
            const double* k =
                &inputs[0].values[(row * v.length + j) * columns + width + head * v.size];
            const double* distance =
                &inputs[1].values[row_of[i + v.length - 1 - j] * columns + head * v.size];
            double sum = 0, magnitude = 0;
            for (uint64_t d = 0; d < v.size; ++d) {
              const double position = v.to_position ? q[d] * distance[width + d] : 0,
                           content = v.to_content ? k[d] * distance[d] : 0;
              sum += position + content;
              magnitude += std::abs(position) + std::abs(content);
            }
            append(y, v.exact ? Bounded(sum * options.scale)
                              : Bounded(sum, sum_error(2.0 * v.size + 1, magnitude)) *
                                    Bounded(options.scale));
          }
    return std::vector<CpuTensor>{y, u32_tensor(counts)};
  };
  return c;
}

class DisentangledCases : public OpCases {
 public:
  std::string shape_format() const override { return "rows,length,heads,size,distances"; }
  std::vector<std::vector<uint64_t>> bench_shapes() const override {
    return {{8, 64, 12, 64, 512}, {1, 512, 12, 64, 512}};
  }
  bool exact(KernelTypes) const override { return true; }
  OpCase make(std::span<const uint64_t> shape, KernelTypes) const override {
    if (shape.size() != 5 || std::ranges::count(shape, uint64_t{0}) > 0 ||
        std::ranges::any_of(shape, [](uint64_t extent) { return extent > 1u << 20; })) {
      throw ShapeError("disentangled_bias", "a shape is five positive numbers",
                       "give rows,length,heads,columns of a head,distances such as 8,64,12,64,512");
    }
    return disentangled_bias_case({static_cast<uint32_t>(shape[0]), static_cast<uint32_t>(shape[1]),
                                   static_cast<uint32_t>(shape[2]), static_cast<uint32_t>(shape[3]),
                                   static_cast<uint32_t>(shape[4])});
  }
  std::vector<OpCase> samples(KernelTypes) const override {
    return {disentangled_bias_case({}),
            disentangled_bias_case({.length = 7, .size = 5, .distances = 3}),
            disentangled_bias_case({3, 13, 2, 16, 9}),
            disentangled_bias_case({3, 13, 2, 16, 9, true, false}),
            disentangled_bias_case({3, 13, 2, 16, 9, false, true}),
            disentangled_bias_case({2, 33, 3, 64, 64}),
            disentangled_bias_case({5, 8, 4, 12, 16}),
            disentangled_bias_case({5, 8, 4, 12, 16, true, true, true})};
  }
};

}  // namespace

const OpCases& disentangled_bias_cases() {
  static const DisentangledCases cases;
  return cases;
}

}  // namespace mulciber::conformance
