// Cases of matmul; conformance/op_cases.cpp declares them.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "conformance/block_input.h"
#include "conformance/op_case.h"
#include "conformance/ops/activation_reference.h"
#include "conformance/ops/product_operands.h"
#include "conformance/ops/product_reference.h"
#include "mulciber/error.h"
#include "ops/copy.h"
#include "ops/matmul.h"
#include "shaders/matmul.h"
#include "shaders/matmul_lanes.h"

namespace mulciber::conformance {

namespace {

/// Type of a product's result for the type of x.
DataType matmul_result_type(DataType x) { return x == DataType::kQ8_1 ? DataType::kF32 : x; }

struct MatmulVariant {
  Activation activation = Activation::kNone;
  bool bias = false;
  bool accumulate = false;
  uint64_t columns_before = 0, columns_after = 0;  // columns of an existing wider result
  double deviation = 1;                            // deviation of x's values
  bool exact = false;
  bool gated = false;
  bool long_list_alone = false;
  bool small = false;  // exact also in f16
  uint32_t parts = 0;  // number of splits of K; 0: default
  bool quads = false;  // for rows that store four columns at once
  bool padded = false;
};

class MatmulCases : public OpCases {
 public:
  std::string shape_format() const override { return "M,N,K"; }
  bool exact(KernelTypes) const override { return true; }

  std::vector<std::vector<uint64_t>> bench_shapes() const override {
    return {{64, 2048, 768}, {8, 2048, 768}, {1, 2048, 768},  {1, 8000, 256},
            {64, 256, 256},  {16, 128, 128}, {64, 1024, 256}, {256, 768, 2048}};
  }

  OpCase make(std::span<const uint64_t> shape, KernelTypes types) const override {
    if (shape.size() != 3 || shape[0] == 0 || shape[1] == 0 || shape[2] == 0) {
      throw ShapeError("matmul", "a shape is three positive numbers",
                       "give M,N,K such as 64,2048,768");
    }
    const KernelTypes concrete = plain_types(types);
    if (shape[2] % block_elements(concrete.weight) != 0) {
      throw ShapeError(
          "matmul", fmt::format("{} is not whole blocks of {}", shape[2], name_of(concrete.weight)),
          "give a K of whole blocks");
    }
    return variant({shape[0]}, shape[1], shape[2], concrete, {});
  }

  std::vector<OpCase> samples(KernelTypes row_types) const override {
    if (of_blocks(row_types.weight)) return block_samples(row_types);
    const KernelTypes types = plain_types(row_types);
    std::vector<OpCase> cases;
    auto add = [&](std::vector<uint64_t> rows, uint64_t n, uint64_t k, MatmulVariant options = {}) {
      cases.push_back(variant(std::move(rows), n, k, types, options));
    };
    // Every edge of every tile: one, primes, a power of two and its neighbours.
    for (uint64_t m : {1, 2, 3, 7, 8, 9, 16, 31, 33}) {
      add({m}, 1, 1);
      add({m}, 37, 19);
      add({m}, 64, 64);
    }
    add({17}, 129, 67);
    add({64}, 96, 256);
    add({65}, 63, 72);
    add({127}, 130, 40);
    add({129}, 257, 36);
    add({1}, 515, 770);
    add({4}, 1000, 256);
    add({2, 5}, 48, 96);
    add({2, 3, 7}, 20, 24);
    add({20}, 1030,
        320);  // above 1 MiB in f32: several nodes where the storage range is that small
    add({300}, 70, 1028);
    add({66}, 260, 40);  // several large tiles, with edges
    // Whole tiles of all rows on matrix units: in every direction, then in either rows or columns,
    // then in depth (the next case).
    add({128}, 256, 64, {.long_list_alone = true});
    add({128}, 257, 40, {.long_list_alone = true});
    add({130}, 256, 40, {.bias = true, .long_list_alone = true});
    add({130}, 271, 64, {.activation = Activation::kGelu, .bias = true});
    add({20}, 300, 128, {.bias = true, .accumulate = true, .columns_before = 3});
    for (Activation function : {Activation::kRelu, Activation::kGelu, Activation::kGeluTanh,
                                Activation::kSilu, Activation::kTanh, Activation::kQuickGelu}) {
      add({5}, 40, 36, {.activation = function, .bias = true});
      // tanh exposes errors of large cancelling sums, which no share of the result bounds.
      if (function != Activation::kTanh)
        add({19}, 40, 36, {.activation = function, .deviation = 1e4});
    }
    for (uint64_t m : {1, 6, 21, 70}) {
      add({m}, 43, 32, {.bias = true});
      add({m}, 43, 32, {.activation = Activation::kRelu, .bias = true, .accumulate = true});
      add({m}, 24, 29, {.bias = true, .columns_before = 24, .columns_after = 24});
      add({m}, 31, 64, {.columns_before = 5, .columns_after = 3});
      add({m}, 31, 64, {.accumulate = true, .columns_before = 3, .columns_after = 1});
    }
    // Gated products: every tile with and without edges, both activations that models use, a wider
    // result.
    for (uint64_t m : {1, 3, 9, 65}) {
      add({m}, 2, 5, {.activation = Activation::kSilu, .gated = true});
      add({m}, 74, 40, {.activation = Activation::kSilu, .gated = true});
      add({m}, 38, 32,
          {.activation = Activation::kSilu,
           .bias = true,
           .columns_before = 3,
           .columns_after = 2,
           .gated = true});
    }
    add({8}, 64, 64, {.activation = Activation::kGeluTanh, .gated = true});
    add({33}, 22, 24,
        {.activation = Activation::kRelu, .bias = true, .accumulate = true, .gated = true});
    add({2, 3, 7}, 258, 48, {.activation = Activation::kGeluTanh, .gated = true});
    add({129}, 514, 36, {.activation = Activation::kSilu, .gated = true});
    add({4}, 1030, 320, {.activation = Activation::kSilu, .gated = true});  // above 1 MiB in f32
    // Whole numbers, exact in every bit: every tile with and without edges, every exact epilogue.
    add({1}, 37, 24, {.bias = true, .exact = true});
    add({1}, 515, 264, {.exact = true});
    add({3}, 31, 64, {.activation = Activation::kRelu, .bias = true, .exact = true});
    add({5}, 19, 13, {.exact = true});
    add({8}, 130, 72, {.bias = true, .accumulate = true, .exact = true});
    add({9}, 33, 16, {.exact = true});
    add({2, 3, 7}, 20, 24, {.accumulate = true, .exact = true});
    add({16}, 64, 32, {.activation = Activation::kRelu, .exact = true});
    add({17}, 129, 40, {.bias = true, .columns_before = 3, .columns_after = 2, .exact = true});
    add({33}, 65, 128, {.exact = true});
    add({65}, 66, 40, {.exact = true, .long_list_alone = true});  // for the self-test
    // Drivers take long to compile the large tiles, once per epilogue: so there are few epilogues,
    // repeated in many cases.
    add({64}, 256, 64, {.bias = true, .accumulate = true, .exact = true});
    add({65}, 257, 36, {.exact = true});
    add({127}, 261, 8, {.exact = true});
    add({129}, 271, 68, {.bias = true, .accumulate = true, .columns_before = 1, .exact = true});
    add({66}, 260, 320, {.exact = true});
    // Rows for bf16 have its range, which f16 lacks.
    if (row_types.weight == DataType::kBF16)
      add({19}, 40, 64, {.deviation = 1e6, .long_list_alone = true});
    // Four columns at once, within a wider result and at the end of a padded one.
    if (types.activation == DataType::kF32) {
      add({21}, 24, 32,
          {.bias = true,
           .accumulate = true,
           .columns_before = 8,
           .columns_after = 4,
           .quads = true});
      for (uint64_t m : {3, 19}) add({m}, 37, 40, {.bias = true, .quads = true, .padded = true});
    }
    // Split-K, with small and large tiles and parts of unequal depth.
    add({9}, 33, 320, {.activation = Activation::kGelu, .bias = true, .parts = 3});
    add({17}, 74, 256,
        {.activation = Activation::kSilu,
         .bias = true,
         .columns_before = 3,
         .gated = true,
         .parts = 4});
    add({65}, 257, 132, {.exact = true, .parts = 2});
    add({130}, 271, 416,
        {.bias = true, .accumulate = true, .columns_before = 1, .exact = true, .parts = 5});
    if (types.activation == DataType::kF16 && types.weight == DataType::kF16) {
      add({3}, 37, 200, {.bias = true, .exact = true, .small = true});
      add({37}, 71, 2800, {.exact = true, .small = true});
      add({66}, 259, 72,
          {.bias = true, .accumulate = true, .columns_before = 1, .exact = true, .small = true});
    }
    if (row_types.weight == DataType::kHalf) {
      const KernelTypes other{types.activation, DataType::kBF16};
      auto add_other = [&](std::vector<uint64_t> rows, uint64_t n, uint64_t k,
                           MatmulVariant options) {
        cases.push_back(variant(std::move(rows), n, k, other, options));
      };
      add_other({1}, 37, 24, {.bias = true, .exact = true});
      add_other({1}, 515, 770, {});
      add_other({5}, 19, 13, {.exact = true});
      add_other({8}, 130, 72, {.bias = true, .accumulate = true, .exact = true});
      add_other({17}, 129, 40,
                {.bias = true, .columns_before = 3, .columns_after = 2, .exact = true});
      add_other({17}, 129, 67, {});
      add_other({66}, 260, 40, {});
    }
    return cases;
  }

 private:
  /// Every block type with one row and with several, with an odd and an even number of blocks. The
  /// edges of tiles and the epilogues are distributed over the types, because each is a pipeline of
  /// its own.
  static std::vector<OpCase> block_samples(KernelTypes row_types) {
    std::vector<OpCase> cases;
    std::vector<KernelTypes> all = concrete_types(row_types);
    for (const KernelTypes& types : all) {
      const uint64_t block = block_elements(types.weight);
      const bool long_list_alone = !covers_blocks(types.weight);
      cases.push_back(
          variant({1}, 37, 768 - block, types, {.bias = true, .long_list_alone = long_list_alone}));
      cases.push_back(variant({17}, 45, block == 32 ? 96 : 256, types,
                              {.exact = true, .long_list_alone = long_list_alone}));
    }
    if (row_types.weight == DataType::kGrids) {
      for (const DataType type : {DataType::kIQ2_XS, DataType::kIQ3_S})
        cases.push_back(variant({6}, 38, 512, {row_types.activation, type},
                                {.activation = Activation::kSilu, .gated = true}));
      cases.push_back(
          variant({3}, 31, 256, {row_types.activation, DataType::kIQ2_S}, {.exact = true}));
      cases.push_back(variant({33}, 35, 256, {row_types.activation, DataType::kIQ2_XS},
                              {.exact = true, .long_list_alone = true}));
      return cases;
    }
    // Whole tiles of all rows, a few blocks deep, for the self-test.
    const KernelTypes plain = plain_types(row_types);
    const MatmulVariant whole = {.exact = true, .long_list_alone = true};
    cases.push_back(variant({65}, 66, 64, plain, whole));
    cases.push_back(variant({127}, 257, 32, plain, whole));
    std::erase_if(all, [](const KernelTypes& types) { return types.weight > DataType::kQ6_K; });
    struct Sample {
      std::vector<uint64_t> rows;
      uint64_t n, k;
      MatmulVariant options;
    };
    const std::vector<Sample> samples = {
        {{1}, 1, 256, {}},
        {{1},
         70,
         512,
         {.activation = Activation::kRelu, .bias = true, .accumulate = true, .exact = true}},
        {{2}, 515, 1280, {}},
        {{3}, 31, 256, {.exact = true}},
        {{8}, 130, 512, {.bias = true, .accumulate = true}},
        {{2, 3, 7}, 33, 256, {.columns_before = 3, .columns_after = 2}},
        {{33}, 65, 512, {.activation = Activation::kSilu, .long_list_alone = true}},
        {{1}, 74, 256, {.activation = Activation::kSilu, .gated = true}},
        {{9}, 38, 512, {.activation = Activation::kGeluTanh, .columns_before = 3, .gated = true}},
        {{66}, 260, 256, {}},
        {{129}, 271, 256, {.bias = true, .accumulate = true, .columns_before = 1, .exact = true}},
        {{128}, 256, 256, {.long_list_alone = true}},  // whole tiles
        {{3}, 2100, 1024, {}},  // above 1 MiB: several nodes where the storage range is that small
        {{18}, 74, 768, {.activation = Activation::kSilu, .bias = true, .gated = true, .parts = 5}},
        {{66}, 260, 512, {.accumulate = true, .columns_before = 3, .exact = true, .parts = 2}},
    };
    for (size_t i = 0; i < samples.size(); ++i) {
      for (const KernelTypes& types : {all[i % all.size()], all[(i + 3) % all.size()]})
        cases.push_back(
            variant(samples[i].rows, samples[i].n, samples[i].k, types, samples[i].options));
    }
    return cases;
  }

  static OpCase variant(std::vector<uint64_t> rows, uint64_t n, uint64_t k, KernelTypes types,
                        MatmulVariant options) {
    auto shape = [&](uint64_t columns) {
      std::vector<uint64_t> extents = rows;
      extents.push_back(columns);
      return Shape(extents);
    };
    const uint64_t results = options.gated ? n / 2 : n;
    uint64_t total = options.columns_before + results + options.columns_after;
    bool existing = options.accumulate || total != results;
    Shape result = shape(total);

    OpCase c;
    c.types = types;
    c.name = fmt::format("m{}_n{}_k{}", fmt::join(rows, "x"), n, k);
    if (options.activation != Activation::kNone)
      c.name += fmt::format(".{}", name_of(options.activation));
    if (options.bias) c.name += ".bias";
    if (options.accumulate) c.name += ".accumulate";
    if (options.gated) c.name += ".gated";
    if (total != results) c.name += fmt::format(".columns_{}_of_{}", options.columns_before, total);
    if (options.deviation != 1) c.name += ".large";
    if (options.quads) c.needs_constant = MATMUL_STORE_QUADS;
    if (options.padded) c.name += ".padded";
    if (options.parts != 0) {
      c.name += fmt::format(".split_{}", options.parts);
      c.needs_constant = MATMUL_SPLIT_DEPTH;
    }

    if (is_block_type(types.weight) || types.weight == DataType::kBF16)
      c.name += fmt::format(".{}", name_of(types.weight));
    if (options.exact) c.name += options.small ? ".small.exact" : ".exact";
    c.exact = options.exact;
    c.tiled_rows = result.rows();
    c.tiled_columns = n;
    c.long_list_alone = options.long_list_alone;
    c.must_pass =
        !options.long_list_alone && (options.activation != Activation::kNone || options.bias ||
                                     (n == 37 && k == 19) || n > 250 || options.gated);
    if (options.exact) c.sums = options.small ? OpCase::Sums::kF16 : OpCase::Sums::kF32;

    if (options.small) {
      c.inputs.push_back(small_operand(shape(k), types.activation, Part::kRepeated));
      c.inputs.push_back(small_operand({n, k}, types.weight, Part::kOpposed));
      if (options.bias) c.inputs.push_back(whole_input({n}, DataType::kF32, 60));
      if (existing)
        c.inputs.push_back(whole_input(result, matmul_result_type(types.activation), 200));
    } else if (c.exact) {
      // f16 represents whole numbers up to 2048, so results of that type must cancel.
      const bool cancelling = types.activation == DataType::kF16 && k > 1;
      c.inputs.push_back(
          whole_operand(shape(k), types.activation, cancelling ? Part::kRepeated : Part::kFree));
      c.inputs.push_back(
          whole_operand({n, k}, types.weight, cancelling ? Part::kOpposed : Part::kFree));
      if (options.bias) c.inputs.push_back(whole_input({n}, DataType::kF32, 60));
      if (existing)
        c.inputs.push_back(whole_input(result, matmul_result_type(types.activation), 200));
    } else {
      c.inputs.push_back(normal_input(shape(k), types.activation, options.deviation));
      c.inputs.push_back(normal_input({n, k}, types.weight, 1 / std::sqrt(double(k))));
      if (options.bias) c.inputs.push_back(normal_input({n}, DataType::kF32));
      if (existing) c.inputs.push_back(normal_input(result, matmul_result_type(types.activation)));
    }

    c.build = [options, existing, result](ProgramBuilder& builder, std::span<const Tensor> inputs) {
      MatmulOptions given;
      if (options.bias) given.bias = inputs[2];
      if (options.accumulate) {
        given.accumulate_into = inputs.back();
      } else if (existing) {
        given.into = inputs.back();
      }
      given.activation = options.activation;
      given.gated = options.gated;
      if (options.parts != 0) given.depth_parts = options.parts;
      given.first_column = static_cast<uint32_t>(options.columns_before);
      given.padded = options.padded;
      const Tensor y = matmul(builder, inputs[0], inputs[1], given);
      if (!options.padded) return std::vector<Tensor>{y};
      const Tensor kept = builder.activation(result, y.type);
      copy_columns(builder, y, kept, {.columns = static_cast<uint32_t>(result.columns())});
      return std::vector<Tensor>{kept};
    };
    c.reference = [options, existing, results, total, result](std::span<const CpuTensor> inputs,
                                                              const Arithmetic& arithmetic) {
      CpuTensor y{result, matmul_result_type(inputs[0].type),
                  std::vector<double>(result.elements()), std::vector<double>(result.elements())};
      if (existing) y.values = inputs.back().values;
      const Product product(inputs[0], inputs[1], options.bias ? &inputs[2] : nullptr, arithmetic);
      for (uint64_t i = 0; i < result.rows(); ++i) {
        for (uint64_t j = 0; j < results; ++j) {
          Bounded value =
              activation_reference(product.at(i, options.gated ? 2 * j : j), options.activation);
          if (options.gated) value = value * product.at(i, 2 * j + 1);
          const uint64_t at = i * total + options.columns_before + j;
          if (options.accumulate) value = value + Bounded(y.values[at]);
          put(y, at, value);
        }
      }
      return std::vector<CpuTensor>{y};
    };
    return c;
  }
};

}  // namespace

const OpCases& matmul_cases() {
  static const MatmulCases cases;
  return cases;
}

}  // namespace mulciber::conformance
