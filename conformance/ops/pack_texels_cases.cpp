// Cases and reference of pack_texels; conformance/op_cases.cpp declares the cases.
#include <algorithm>
#include <cmath>
#include <random>

#include <fmt/format.h>

#include "conformance/op_case.h"
#include "mulciber/error.h"
#include "ops/texels.h"

namespace mulciber::conformance {
namespace {

const char* texel_name(TexelFormat format) {
  switch (format) {
    case TexelFormat::kUnorm8: return "unorm8";
    case TexelFormat::kUnorm16: return "unorm16";
    case TexelFormat::kGrey8: return "grey8";
  }
  return "?";
}

double largest_texel_step(TexelFormat format) {
  return format == TexelFormat::kUnorm16 ? 65535 : 255;
}

/// Numbers at least a tenth of a step away from where rounding changes, some of them beyond 0 and
/// 1.
CaseInput texel_steps_input(uint64_t count, TexelFormat format) {
  CaseInput input = {.shape = {count}, .type = DataType::kF32};
  input.fill = [format](std::vector<double>& values, std::mt19937& random) {
    const auto largest = static_cast<int>(largest_texel_step(format));
    std::uniform_int_distribution<int> step(-largest / 8, largest + largest / 8);
    std::uniform_real_distribution<double> beside(-0.4, 0.4);
    for (double& value : values) value = (step(random) + beside(random)) / largest;
  };
  return input;
}

OpCase pack_texels_case(uint64_t count, TexelFormat format, KernelTypes types) {
  OpCase c;
  c.name = fmt::format("n{}.{}", count, texel_name(format));
  c.types = types;
  c.exact = true;
  c.must_pass = count == 257;
  // All numbers may be clamped to one.
  c.degenerate = count < 8;
  c.inputs = {texel_steps_input(count, format)};
  c.build = [=](ProgramBuilder& builder, std::span<const Tensor> inputs) {
    return std::vector<Tensor>{pack_texels(builder, inputs[0], format)};
  };
  c.reference = [=](std::span<const CpuTensor> inputs, const Arithmetic&) {
    const uint32_t each = texels_of(format), bits = format == TexelFormat::kUnorm16 ? 16 : 8;
    std::vector<uint32_t> words((count + each - 1) / each);
    for (uint64_t i = 0; i < count; ++i) {
      const double x = std::clamp(inputs[0].values[i], 0.0, 1.0);
      const auto step = static_cast<uint32_t>(std::floor(x * largest_texel_step(format) + 0.5));
      words[i / each] |= step << (i % each * bits);
    }
    if (format == TexelFormat::kGrey8) {
      for (uint32_t& word : words) word |= word << 8 | word << 16 | 0xffu << 24;
    }
    return std::vector<CpuTensor>{u32_tensor(words)};
  };
  return c;
}

class PackTexelsCases : public OpCases {
 public:
  std::string shape_format() const override { return "ELEMENTS"; }
  bool exact(KernelTypes) const override { return true; }
  std::vector<std::vector<uint64_t>> bench_shapes() const override { return {{4096}, {1 << 20}}; }
  OpCase make(std::span<const uint64_t> shape, KernelTypes types) const override {
    if (shape.size() != 1 || shape[0] == 0) {
      throw ShapeError("pack_texels", "a shape is one positive number",
                       "give a count such as 4096");
    }
    return pack_texels_case(shape[0], TexelFormat::kUnorm8, types);
  }
  std::vector<OpCase> samples(KernelTypes types) const override {
    std::vector<OpCase> cases;
    for (const TexelFormat format :
         {TexelFormat::kUnorm8, TexelFormat::kUnorm16, TexelFormat::kGrey8}) {
      for (const uint64_t count : {1, 2, 3, 5, 63, 64, 65, 257, 1021, 70001})
        cases.push_back(pack_texels_case(count, format, types));
    }
    return cases;
  }
};

}  // namespace

const OpCases& pack_texels_cases() {
  static const PackTexelsCases cases;
  return cases;
}

}  // namespace mulciber::conformance
