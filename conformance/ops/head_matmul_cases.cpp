// Cases and reference of head_matmul; conformance/op_cases.cpp declares the cases.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "conformance/block_input.h"
#include "conformance/bounds.h"
#include "conformance/op_case.h"
#include "mulciber/error.h"
#include "ops/head_matmul.h"

namespace mulciber::conformance {
namespace {

struct HeadMatmulVariant {
  uint64_t rows = 1;
  uint32_t heads = 1, columns = 1, depth = 1;
  bool transposed = false, add = false;
  bool one_matrix = false;  // for all heads
  uint32_t spare = 0;       // columns and rows before the first head, between heads, after the last
  bool exact = false;
};

HeadMatmulOptions head_matmul_options(const HeadMatmulVariant& v) {
  return {.heads = v.heads,
          .depth = v.depth,
          .columns = v.columns,
          .x_first = v.spare,
          .x_step = v.depth + v.spare,
          .y_first = 2 * v.spare,
          .y_step = v.columns + v.spare,
          .weight_first = v.spare,
          .weight_step = v.one_matrix ? 0 : (v.transposed ? v.depth : v.columns) + v.spare,
          .transposed = v.transposed,
          .add = v.add};
}

CpuTensor head_matmul_reference(const HeadMatmulVariant& v, std::span<const CpuTensor> inputs) {
  const HeadMatmulOptions o = head_matmul_options(v);
  const CpuTensor &x = inputs[0], &weight = inputs[1];
  CpuTensor y = inputs[2];
  y.bounds.assign(y.values.size(), 0);
  const uint64_t x_columns = x.shape.columns(), along = weight.shape.columns();
  for (uint64_t row = 0; row < v.rows; ++row) {
    for (uint64_t head = 0; head < v.heads; ++head) {
      for (uint64_t n = 0; n < v.columns; ++n) {
        const uint64_t at = row * y.shape.columns() + o.y_first + head * o.y_step + n;
        double sum = v.add ? y.values[at] : 0, magnitude = std::abs(sum);
        for (uint64_t k = 0; k < v.depth; ++k) {
          const uint64_t weight_row =
              o.weight_first + head * o.weight_step + (v.transposed ? k : n);
          const uint64_t of = weight_row * along + (v.transposed ? n : k);
          const double factor = x.values[row * x_columns + o.x_first + head * o.x_step + k];
          sum += factor * weight.values[of];
          // A value in blocks is a sum itself.
          magnitude +=
              std::abs(factor * (weight.sizes.empty() ? weight.values[of] : weight.sizes[of]));
        }
        const double terms = static_cast<double>(v.depth * (weight.sizes.empty() ? 1 : 2) + 1);
        CpuTensor one{{1}, y.type, {}, {}};
        append(one, Bounded(sum, v.exact ? 0 : sum_error(terms, magnitude)));
        y.values[at] = one.values[0];
        y.bounds[at] = one.bounds[0];
      }
    }
  }
  return y;
}

OpCase head_matmul_case(const HeadMatmulVariant& v, KernelTypes types) {
  OpCase c;
  c.name = fmt::format("r{}_h{}_n{}_k{}", v.rows, v.heads, v.columns, v.depth);
  if (v.transposed) c.name += ".transposed";
  if (v.add) c.name += ".add";
  if (v.one_matrix) c.name += ".one_matrix";
  if (v.spare > 0) c.name += fmt::format(".spare_{}", v.spare);
  if (is_block_type(types.weight) || types.weight == DataType::kBF16)
    c.name += fmt::format(".{}", name_of(types.weight));
  if (v.exact) c.name += ".exact";
  c.types = types;
  c.exact = v.exact;
  c.tiled_rows = v.rows;
  c.tiled_columns = v.columns;
  // For each orientation: a product that is added, an exact one, and one matrix for all heads.
  c.must_pass = v.rows == 9 || (v.rows == 8 && v.exact) || v.one_matrix;
  const auto values = [&](Shape shape, DataType type) {
    return v.exact ? whole_input(shape, type, 3) : normal_input(shape, type);
  };
  const HeadMatmulOptions o = head_matmul_options(v);
  const uint64_t head_rows = v.transposed ? v.depth : v.columns;
  const uint64_t heads = v.heads - uint64_t{1};
  c.inputs = {
      values({v.rows, o.x_first + heads * o.x_step + v.depth + v.spare}, types.activation),
      values({o.weight_first + heads * o.weight_step + head_rows + v.spare,
              v.transposed ? v.columns : v.depth},
             types.weight),
      values({v.rows, o.y_first + heads * o.y_step + v.columns + v.spare}, types.activation)};
  c.build = [=](ProgramBuilder& builder, std::span<const Tensor> inputs) {
    head_matmul(builder, inputs[0], inputs[1], inputs[2], o);
    return std::vector<Tensor>{inputs[2]};
  };
  c.reference = [=](std::span<const CpuTensor> inputs, const Arithmetic&) {
    return std::vector<CpuTensor>{head_matmul_reference(v, inputs)};
  };
  return c;
}

class HeadMatmulCases : public OpCases {
 public:
  std::string shape_format() const override { return "rows,heads,N,K"; }
  /// A value in blocks is a sum itself, which is rounded.
  bool exact(KernelTypes types) const override { return !of_blocks(types.weight); }
  std::vector<std::vector<uint64_t>> bench_shapes() const override {
    return {{1, 16, 128, 512}, {1, 128, 128, 512}, {128, 16, 128, 512}};
  }
  OpCase make(std::span<const uint64_t> shape, KernelTypes types) const override {
    if (shape.size() != 4 || std::ranges::count(shape, uint64_t{0}) > 0)
      throw ShapeError("head_matmul", "a shape is four positive numbers",
                       "give rows,heads,N,K such as 1,16,128,512");
    const KernelTypes concrete = plain_types(types);
    if (shape[3] % block_elements(concrete.weight) != 0)
      throw ShapeError(
          "head_matmul",
          fmt::format("{} is not whole blocks of {}", shape[3], name_of(concrete.weight)),
          "give a K of whole blocks");
    return head_matmul_case({.rows = shape[0],
                             .heads = static_cast<uint32_t>(shape[1]),
                             .columns = static_cast<uint32_t>(shape[2]),
                             .depth = static_cast<uint32_t>(shape[3])},
                            concrete);
  }
  /// The transposed product.
  std::vector<OpCase> kinds(std::span<const uint64_t> shape, KernelTypes types) const override {
    const KernelTypes concrete = plain_types(types);
    if (shape[2] % block_elements(concrete.weight) != 0) return {};
    OpCase c = head_matmul_case({.rows = shape[0],
                                 .heads = static_cast<uint32_t>(shape[1]),
                                 .columns = static_cast<uint32_t>(shape[2]),
                                 .depth = static_cast<uint32_t>(shape[3]),
                                 .transposed = true},
                                concrete);
    c.name = "transposed";
    return {c};
  }

  std::vector<OpCase> samples(KernelTypes row_types) const override {
    std::vector<OpCase> cases;
    const bool blocks = of_blocks(row_types.weight);
    const bool odd = row_types.activation == DataType::kF32 && row_types.weight == DataType::kF32;
    std::vector<KernelTypes> all = {plain_types(row_types)};
    if (blocks || row_types.weight == DataType::kHalf) all = concrete_types(row_types);
    for (const KernelTypes types : all) {
      const auto block = static_cast<uint32_t>(block_elements(types.weight));
      const bool first = types == all.front();
      for (bool transposed : {false, true}) {
        // along: extent of the side in blocks.
        const auto add = [&](HeadMatmulVariant v, uint32_t along, uint32_t other) {
          v.transposed = transposed;
          v.columns = transposed ? along : other;
          v.depth = transposed ? other : along;
          cases.push_back(head_matmul_case(v, types));
        };
        const uint32_t wide = std::max(block, 64u);
        add({.rows = 3, .heads = 3, .spare = 4}, wide, 20);
        if (blocks && !first) continue;
        add({.heads = 2}, wide, 12);
        add({.rows = 9, .heads = 2, .add = true, .spare = 8}, 2 * wide, 36);
        add({.rows = 8, .heads = 5, .exact = !blocks}, wide, 72);
        add({.rows = 5, .heads = 3, .add = true, .one_matrix = true, .spare = 4}, wide, 24);
        add({.rows = 67, .heads = 2}, 2 * wide, 132);
        add({.rows = 1, .heads = 2, .add = true}, blocks ? 2 * wide : 132, 132);
        if (blocks) continue;
        add({.rows = 1, .heads = 5, .exact = true}, wide, 72);
        add({.rows = 2, .heads = 3, .spare = 2}, 14, 6);
        add({.rows = 2, .heads = 2}, 2, 2);
        add({.rows = 33, .heads = 1, .exact = true}, 68, 40);
        if (odd) add({.rows = 3, .heads = 2, .spare = 1}, 13, 7);
        if (odd) add({.rows = 2, .heads = 1, .add = true}, 1, 1);
      }
    }
    return cases;
  }
};

}  // namespace

const OpCases& head_matmul_cases() {
  static const HeadMatmulCases cases;
  return cases;
}

}  // namespace mulciber::conformance
