// Cases and reference of expert_matmul; conformance/op_cases.cpp declares the cases.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "conformance/block_input.h"
#include "conformance/bounds.h"
#include "conformance/op_case.h"
#include "mulciber/error.h"
#include "ops/experts.h"

namespace mulciber::conformance {
namespace {

struct ExpertVariant {
  uint64_t tokens = 1, experts_per_token = 1, experts = 1, columns = 1, depth = 1;
  bool combine = false, normalize = false, gated = false, bias = false, exact = false;
  Activation activation = Activation::kNone;
  bool one_expert = false;  // all routes lead to the last expert
  float limit = 0;          // for gates
  bool parts = false;       // at most half of the matrices is bound at a time
};

/// Routes in top_k's format: the bits of a log probability and an expert; the experts of a token
/// are distinct.
void fill_expert_routes(const ExpertVariant& v, std::vector<double>& words, std::mt19937& random) {
  std::vector<uint32_t> experts(v.experts);
  for (uint32_t e = 0; e < v.experts; ++e) experts[e] = e;
  std::uniform_real_distribution<float> share(0.05f, 0.95f);
  for (uint64_t token = 0; token < v.tokens; ++token) {
    std::shuffle(experts.begin(), experts.end(), random);
    for (uint64_t slot = 0; slot < v.experts_per_token; ++slot) {
      double* route = &words[(token * v.experts_per_token + slot) * 2];
      route[0] = bits_of(std::log(share(random)));
      route[1] = v.one_expert ? static_cast<double>(v.experts - 1) : experts[slot];
    }
  }
}

class ExpertReference {
 public:
  ExpertReference(const ExpertVariant& v, std::span<const CpuTensor> inputs)
      : v_(v), inputs_(inputs) {}

  CpuTensor all(DataType type) const {
    CpuTensor y{v_.combine ? Shape{v_.tokens, v_.columns}
                           : Shape{v_.tokens, v_.experts_per_token, v_.columns},
                type,
                {},
                {}};
    for (uint64_t row = 0; row < y.shape.rows(); ++row) {
      for (uint64_t column = 0; column < v_.columns; ++column)
        append(y, v_.combine ? combined(row, column)
                             : expert(row / v_.experts_per_token, row, column));
    }
    return y;
  }

 private:
  Bounded product(uint64_t x_row, uint64_t weight_row) const {
    double sum = 0, magnitude = 0;
    // A value in blocks is a sum itself.
    const std::vector<double>&weights = inputs_[1].values, &sizes = inputs_[1].sizes;
    for (uint64_t k = 0; k < v_.depth; ++k) {
      const uint64_t at = weight_row * v_.depth + k;
      const double factor = inputs_[0].values[x_row * v_.depth + k];
      sum += factor * weights[at];
      magnitude += std::abs(factor * (sizes.empty() ? weights[at] : sizes[at]));
    }
    if (v_.bias) {
      sum += inputs_[3].values[weight_row];
      magnitude += std::abs(inputs_[3].values[weight_row]);
    }
    const double terms = static_cast<double>(v_.depth * (sizes.empty() ? 1 : 2) + 1);
    return {sum, v_.exact ? 0 : sum_error(terms, magnitude)};
  }

  Bounded expert(uint64_t x_row, uint64_t route, uint64_t column) const {
    const uint64_t row =
        static_cast<uint64_t>(inputs_[2].values[route * 2 + 1]) * v_.columns + column;
    if (!v_.gated) return activated(product(x_row, row));
    const Bounded gate = product(x_row, row * 2), value = product(x_row, row * 2 + 1);
    if (v_.limit == 0) return activated(gate) * value;
    const double limit = v_.limit;
    return activated({std::min(gate.value, limit), gate.error}) *
           (Bounded(std::clamp(value.value, -limit, limit), value.error) + Bounded(1));
  }

  Bounded activated(Bounded x) const {
    return v_.activation == Activation::kNone ? x : activation_reference(x, v_.activation);
  }

  Bounded combined(uint64_t token, uint64_t column) const {
    Bounded sum, gates;
    for (uint64_t slot = 0; slot < v_.experts_per_token; ++slot) {
      const uint64_t route = token * v_.experts_per_token + slot;
      const Bounded gate =
          exp(Bounded(std::bit_cast<float>(static_cast<uint32_t>(inputs_[2].values[route * 2]))));
      sum = sum + gate * expert(route, route, column);
      gates = gates + gate;
    }
    return v_.normalize ? sum / gates : sum;
  }

  const ExpertVariant& v_;
  std::span<const CpuTensor> inputs_;
};

OpCase expert_matmul_case(const ExpertVariant& v, KernelTypes types) {
  OpCase c;
  c.name = fmt::format("t{}_s{}_e{}_n{}_k{}", v.tokens, v.experts_per_token, v.experts, v.columns,
                       v.depth);
  if (v.combine) c.name += v.normalize ? ".combine_normalized" : ".combine";
  if (v.gated) c.name += ".gated";
  if (v.bias) c.name += ".bias";
  if (v.activation != Activation::kNone)
    c.name += fmt::format(".activation_{}", static_cast<int>(v.activation));
  if (v.one_expert) c.name += ".one_expert";
  if (v.limit > 0) c.name += ".limit";
  if (v.parts) c.name += ".parts";
  const bool blocks = is_block_type(types.weight);
  if (blocks || types.weight == DataType::kBF16)
    c.name += fmt::format(".{}", name_of(types.weight));
  if (v.exact) c.name += ".exact";
  c.types = types;
  c.exact = v.exact;
  // Up to size 64 other cases suffice.
  const auto small = [](uint64_t size) {
    return size == 2 || size == 6 || size == 62 || size == 64;
  };
  c.must_pass = (v.experts_per_token > 1 || v.gated) && !blocks;
  // One type for each way of storing integers and scales.
  const DataType stored[] = {DataType::kQ4_0,  DataType::kQ5_K,   DataType::kQ6_K, DataType::kQ2_K,
                             DataType::kMXFP4, DataType::kF8E4M3, DataType::kIQ2_S};
  c.long_list_alone = small(v.columns) || small(v.depth) ||
                      (std::max(v.columns, v.depth) == 130 && !v.exact) ||
                      (blocks && std::ranges::count(stored, types.weight) == 0);
  const uint64_t matrix_rows = v.gated ? 2 * v.columns : v.columns;
  const auto values = [&](Shape shape, DataType type) {
    return v.exact ? whole_input(shape, type, 3) : normal_input(shape, type);
  };
  c.inputs = {
      values(v.combine ? Shape{v.tokens, v.experts_per_token, v.depth} : Shape{v.tokens, v.depth},
             types.activation),
      values({v.experts, matrix_rows, v.depth}, types.weight),
      {{v.tokens, v.experts_per_token, 2},
       DataType::kU32,
       [=](std::vector<double>& words, std::mt19937& random) {
         fill_expert_routes(v, words, random);
       }}};
  if (v.bias) c.inputs.push_back(values({v.experts * matrix_rows}, DataType::kF32));
  c.build = [=](ProgramBuilder& builder, std::span<const Tensor> inputs) {
    ExpertOptions options{.combine = v.combine,
                          .normalize = v.normalize,
                          .activation = v.activation,
                          .gated = v.gated,
                          .limit = v.limit};
    if (v.bias) options.bias = inputs[3];
    if (v.parts) options.bound_bytes = inputs[1].bytes() / 2;
    return std::vector<Tensor>{expert_matmul(builder, inputs[0], inputs[1], inputs[2], options)};
  };
  c.reference = [=](std::span<const CpuTensor> inputs, const Arithmetic&) {
    return std::vector<CpuTensor>{ExpertReference(v, inputs).all(types.activation)};
  };
  return c;
}

class ExpertCases : public OpCases {
 public:
  std::string shape_format() const override { return "tokens,experts_per_token,experts,N,K"; }
  bool exact(KernelTypes) const override { return true; }
  std::vector<std::vector<uint64_t>> bench_shapes() const override {
    return {{1, 2, 8, 2048, 512}, {64, 2, 8, 2048, 512}};
  }

  OpCase make(std::span<const uint64_t> shape, KernelTypes types) const override {
    if (shape.size() != 5 || std::ranges::count(shape, uint64_t{0}) > 0 || shape[1] > shape[2]) {
      throw ShapeError("expert_matmul",
                       "a shape is five positive numbers, no more experts per token than experts",
                       "give tokens,experts_per_token,experts,N,K such as 64,2,8,2048,512");
    }
    const KernelTypes concrete = plain_types(types);
    if (shape[4] % block_elements(concrete.weight) != 0) {
      throw ShapeError(
          "expert_matmul",
          fmt::format("{} is not whole blocks of {}", shape[4], name_of(concrete.weight)),
          "give a K of whole blocks");
    }
    return expert_matmul_case({.tokens = shape[0],
                               .experts_per_token = shape[1],
                               .experts = shape[2],
                               .columns = shape[3],
                               .depth = shape[4]},
                              concrete);
  }

  std::vector<OpCase> samples(KernelTypes row_types) const override {
    if (of_blocks(row_types.weight)) return block_samples(row_types);
    const KernelTypes types = plain_types(row_types);
    // 16-bit sizes are even.
    const bool odd = types.activation == DataType::kF32 && types.weight == DataType::kF32;
    std::vector<OpCase> cases;
    for (uint64_t size : {2, 6, 62, 64, 66, 130}) {
      const uint64_t other = odd ? size - 1 : size;
      cases.push_back(expert_matmul_case(
          {.tokens = 1, .experts_per_token = 1, .experts = 1, .columns = size, .depth = other},
          types));
      cases.push_back(expert_matmul_case({.tokens = 5,
                                          .experts_per_token = 2,
                                          .experts = 4,
                                          .columns = other,
                                          .depth = size,
                                          .exact = true},
                                         types));
      cases.push_back(expert_matmul_case({.tokens = 7,
                                          .experts_per_token = 3,
                                          .experts = 5,
                                          .columns = size,
                                          .depth = 34,
                                          .bias = true,
                                          .activation = Activation::kRelu},
                                         types));
      cases.push_back(expert_matmul_case({.tokens = 3,
                                          .experts_per_token = 2,
                                          .experts = 3,
                                          .columns = size,
                                          .depth = other,
                                          .gated = true,
                                          .activation = Activation::kSilu},
                                         types));
      cases.push_back(expert_matmul_case({.tokens = 4,
                                          .experts_per_token = 2,
                                          .experts = 8,
                                          .columns = other,
                                          .depth = size,
                                          .combine = true,
                                          .normalize = true},
                                         types));
      cases.push_back(expert_matmul_case({.tokens = 6,
                                          .experts_per_token = 1,
                                          .experts = 8,
                                          .columns = size,
                                          .depth = 30,
                                          .combine = true,
                                          .bias = true},
                                         types));
    }
    cases.push_back(expert_matmul_case({.tokens = 9,
                                        .experts_per_token = 2,
                                        .experts = 6,
                                        .columns = 32,
                                        .depth = 16,
                                        .combine = true,
                                        .one_expert = true},
                                       types));
    cases.push_back(expert_matmul_case({.tokens = 300,
                                        .experts_per_token = 2,
                                        .experts = 7,
                                        .columns = 96,
                                        .depth = 40,
                                        .combine = true,
                                        .normalize = true},
                                       types));
    // Depths that subgroups' loads do not divide, and columns that are not multiples of 4.
    for (const bool parts : {false, true})
      cases.push_back(expert_matmul_case({.tokens = 5,
                                          .experts_per_token = 2,
                                          .experts = 4,
                                          .columns = 14,
                                          .depth = 68,
                                          .gated = true,
                                          .bias = true,
                                          .activation = Activation::kQuickGelu,
                                          .limit = 7,
                                          .parts = parts},
                                         types));
    cases.push_back(expert_matmul_case({.tokens = 3,
                                        .experts_per_token = 2,
                                        .experts = 4,
                                        .columns = 26,
                                        .depth = 284,
                                        .combine = true,
                                        .normalize = true,
                                        .bias = true},
                                       types));
    cases.push_back(expert_matmul_case(
        {.tokens = 3, .experts_per_token = 2, .experts = 4, .columns = 6, .depth = 4, .bias = true},
        types));
    if (row_types.weight == DataType::kHalf) {
      const KernelTypes bf16{types.activation, DataType::kBF16};
      cases.push_back(expert_matmul_case({.tokens = 5,
                                          .experts_per_token = 2,
                                          .experts = 4,
                                          .columns = 34,
                                          .depth = 66,
                                          .exact = true},
                                         bf16));
      cases.push_back(expert_matmul_case({.tokens = 4,
                                          .experts_per_token = 2,
                                          .experts = 8,
                                          .columns = 34,
                                          .depth = 66,
                                          .combine = true,
                                          .normalize = true},
                                         bf16));
    }
    return cases;
  }

 private:
  /// Every block type, with results summed and not; the other variants are distributed over the
  /// types.
  static std::vector<OpCase> block_samples(KernelTypes row_types) {
    std::vector<OpCase> cases;
    std::vector<KernelTypes> all = concrete_types(row_types);
    for (const KernelTypes& types : all) {
      const uint64_t block = block_elements(types.weight);
      cases.push_back(expert_matmul_case({.tokens = 7,
                                          .experts_per_token = 2,
                                          .experts = 3,
                                          .columns = 13,
                                          .depth = block == 32 ? 96u : 256u,
                                          .exact = true},
                                         types));
      cases.push_back(expert_matmul_case({.tokens = 3,
                                          .experts_per_token = 2,
                                          .experts = 4,
                                          .columns = 34,
                                          .depth = 512,
                                          .combine = true,
                                          .normalize = true},
                                         types));
    }
    const ExpertVariant forms[] = {
        {.columns = 1, .depth = 256},
        {.tokens = 5,
         .experts_per_token = 2,
         .experts = 4,
         .columns = 70,
         .depth = 768,
         .gated = true,
         .bias = true,
         .activation = Activation::kQuickGelu,
         .limit = 7},
        {.tokens = 9,
         .experts_per_token = 2,
         .experts = 6,
         .columns = 32,
         .depth = 256,
         .combine = true,
         .one_expert = true},
        {.tokens = 130,
         .experts_per_token = 4,
         .experts = 7,
         .columns = 37,
         .depth = 256,
         .combine = true,
         .normalize = true,
         .bias = true},
        {.tokens = 7,
         .experts_per_token = 2,
         .experts = 5,
         .columns = 70,
         .depth = 768,
         .combine = true,
         .normalize = true,
         .parts = true},
    };
    const size_t turns = all.size() > 5 ? 2 : 1;
    for (size_t i = 0; i < std::size(forms) * turns; ++i)
      cases.push_back(
          expert_matmul_case(forms[i / turns], all[(i / turns + i % turns * 5) % all.size()]));
    return cases;
  }
};

}  // namespace

const OpCases& expert_matmul_cases() {
  static const ExpertCases cases;
  return cases;
}

}  // namespace mulciber::conformance
