// Cases and reference of embedding; conformance/op_cases.cpp declares the cases.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "conformance/block_input.h"
#include "conformance/bounds.h"
#include "conformance/op_case.h"
#include "mulciber/error.h"
#include "ops/embedding.h"

namespace mulciber::conformance {

namespace {

struct EmbeddingVariant {
  uint64_t positions = 0;       // rows of the position table; 0: none
  int64_t first_position = -1;  // -1: not in control
  uint32_t row_step = 0;        // above 0: row r begins r times this further on, at its own
  double scale = 1;
  bool ids_past_the_table = false;
  bool exact = false;  // whole numbers throughout
  bool long_list_alone = false;
};

class EmbeddingCases : public OpCases {
 public:
  std::string shape_format() const override { return "rows,length,vocabulary,columns"; }
  bool exact(KernelTypes) const override { return true; }

  std::vector<std::vector<uint64_t>> bench_shapes() const override {
    return {{4, 1, 8000, 512}, {16, 64, 32000, 512}, {1, 512, 32000, 768}};
  }

  OpCase make(std::span<const uint64_t> shape, KernelTypes types) const override {
    if (shape.size() != 4 || std::ranges::count(shape, uint64_t{0}) > 0) {
      throw ShapeError("embedding", "a shape is four positive numbers",
                       "give rows,length,vocabulary,columns such as 16,64,32000,512");
    }
    const KernelTypes concrete = plain_types(types);
    if (shape[3] % block_elements(concrete.weight) != 0) {
      throw ShapeError(
          "embedding",
          fmt::format("{} columns are not whole blocks of {}", shape[3], name_of(concrete.weight)),
          "give columns of whole blocks");
    }
    return variant(shape[0], shape[1], shape[2], shape[3], concrete,
                   {.positions = shape[1], .scale = std::sqrt(double(shape[3]))});
  }

  std::vector<OpCase> samples(KernelTypes row_types) const override {
    if (of_blocks(row_types.weight)) return block_samples(row_types);
    const KernelTypes types = plain_types(row_types);
    std::vector<OpCase> cases;
    auto add = [&](uint64_t rows, uint64_t length, uint64_t vocabulary, uint64_t columns,
                   EmbeddingVariant options = {}) {
      cases.push_back(variant(rows, length, vocabulary, columns, types, options));
    };
    for (uint64_t columns : {1, 2, 3, 4, 7, 8, 31, 64, 65, 96, 129, 512}) {
      add(1, 1, 1, columns);
      add(2, 3, 11, columns, {.exact = true});
      add(3, 5, 11, columns, {.positions = 9, .scale = 8});
      add(5, 2, 13, columns, {.positions = 7, .first_position = 4, .scale = 3.5, .exact = true});
    }
    add(1, 7, 5, 16, {.ids_past_the_table = true});
    add(1, 7, 5, 15, {.ids_past_the_table = true});
    for (int64_t first : {0, 1, 30, 1000000}) {
      add(4, 1, 50, 24, {.positions = 32, .first_position = first});
      add(2, 7, 50, 13, {.positions = 32, .first_position = first, .scale = 3.5});
    }
    // Rows of different lengths: each has its own first position.
    add(4, 1, 50, 24, {.positions = 32, .first_position = 3, .row_step = 7});
    add(5, 3, 50, 13, {.positions = 32, .first_position = 0, .row_step = 8});
    // Tables and results above 1 MiB need several nodes where the storage range is that small.
    add(3, 40, 1500, 260, {.scale = 16});
    add(2, 20, 3001, 135, {.positions = 30});
    add(1, 20, 40, 512, {.positions = 700, .first_position = 500});
    add(10, 130, 20, 301, {.positions = 1100});
    if (row_types.weight == DataType::kHalf) {
      const KernelTypes other{types.activation, DataType::kBF16};
      for (uint64_t columns : {64, 65}) {
        cases.push_back(variant(2, 3, 11, columns, other, {.exact = true}));
        cases.push_back(variant(3, 5, 11, columns, other, {.positions = 9, .scale = 8}));
      }
    }
    return cases;
  }

 private:
  static std::vector<OpCase> block_samples(KernelTypes row_types) {
    std::vector<OpCase> cases;
    const KernelTypes plain = plain_types(row_types);
    for (const KernelTypes& types : concrete_types(row_types)) {
      const uint64_t block = block_elements(types.weight);
      const bool long_list_alone = !covers_blocks(types.weight);
      cases.push_back(variant(2, 3, 11, block == 32 ? 96 : 256, types,
                              {.exact = true, .long_list_alone = long_list_alone}));
      const bool other_grid = is_grid_type(types.weight) && long_list_alone;
      cases.push_back(variant(3, 5, 11, 512, types,
                              {.positions = 9, .scale = 8, .long_list_alone = other_grid}));
      // The choice of the table's row does not depend on the type.
      cases.push_back(
          variant(1, 7, 5, 256, types,
                  {.ids_past_the_table = true, .long_list_alone = types.weight != plain.weight}));
    }
    // A table above 1 MiB.
    cases.push_back(
        variant(3, 40, plain.weight == DataType::kQ4_0 ? 2100 : 3100, 1024, plain, {.scale = 16}));
    return cases;
  }

  static OpCase variant(uint64_t rows, uint64_t length, uint64_t vocabulary, uint64_t columns,
                        KernelTypes types, EmbeddingVariant options) {
    OpCase c;
    c.types = types;
    c.name = fmt::format("r{}_l{}_v{}_c{}", rows, length, vocabulary, columns);
    if (options.positions > 0) c.name += fmt::format(".positions_{}", options.positions);
    if (options.first_position >= 0) c.name += fmt::format(".first_{}", options.first_position);
    if (options.row_step > 0) c.name += fmt::format(".per_row_{}", options.row_step);
    if (options.scale != 1) c.name += ".scaled";
    if (options.ids_past_the_table) c.name += ".clamped";
    if (is_block_type(types.weight) || types.weight == DataType::kBF16)
      c.name += fmt::format(".{}", name_of(types.weight));
    if (options.exact) c.name += ".exact";
    c.exact = options.exact;
    c.long_list_alone = options.long_list_alone;
    c.must_pass =
        options.ids_past_the_table || options.first_position >= 0 || columns == 65 || columns == 96;

    ControlLayout layout(2);
    const auto first_positions = layout.add<uint32_t>(options.row_step > 0 ? rows : 1);
    layout.add<uint32_t>(1);
    const auto tokens = layout.add<uint32_t>(rows * length);
    CaseInput control{{layout.words()}, DataType::kU32, nullptr};
    control.fill = [=](std::vector<double>& words, std::mt19937& random) {
      std::fill_n(words.begin(), tokens.word, 0xffffffff);
      for (uint32_t row = 0; options.first_position >= 0 && row < first_positions.count; ++row)
        words[first_positions.word + row] =
            static_cast<double>(options.first_position + row * options.row_step);
      std::uniform_int_distribution<uint32_t> id(0, static_cast<uint32_t>(vocabulary - 1));
      for (size_t i = tokens.word; i < words.size(); ++i) words[i] = id(random);
      words[tokens.word] = static_cast<double>(vocabulary - 1);
      if (options.ids_past_the_table) {
        words[tokens.word + 1] = static_cast<double>(vocabulary);
        words[tokens.word + 2] = 0xffffffff;
      }
    };
    const auto table = [&](uint64_t count, DataType type) {
      return options.exact ? whole_input({count, columns}, type, 100)
                           : normal_input({count, columns}, type);
    };
    c.inputs = {table(vocabulary, types.weight), control};
    if (options.positions > 0) c.inputs.push_back(table(options.positions, DataType::kF32));
    c.build = [=](ProgramBuilder& builder, std::span<const Tensor> inputs) {
      EmbeddingOptions given;
      given.control = inputs[1];
      given.tokens = tokens;
      given.rows = static_cast<uint32_t>(rows);
      given.length = static_cast<uint32_t>(length);
      given.scale = static_cast<float>(options.scale);
      if (options.positions > 0) given.positions = inputs[2];
      if (options.first_position >= 0) given.first_position = first_positions;
      given.result = types.activation;
      return std::vector<Tensor>{embedding(builder, inputs[0], given)};
    };
    c.reference = [=](std::span<const CpuTensor> inputs, const Arithmetic&) {
      CpuTensor y{{rows, length, columns}, types.activation, {}, {}};
      for (uint64_t token = 0; token < rows * length; ++token) {
        uint64_t row =
            std::min(static_cast<uint64_t>(inputs[1].values[tokens.word + token]), vocabulary - 1);
        uint64_t position = std::max<int64_t>(options.first_position, 0) +
                            token / length * options.row_step + token % length;
        for (uint64_t i = 0; i < columns; ++i) {
          // A value in blocks is a sum that is rounded once; its terms are exact.
          const double entry = inputs[0].values[row * columns + i];
          Bounded value = Bounded(entry, stored_error(DataType::kF32, entry, 0)) *
                          Bounded(static_cast<float>(options.scale));
          if (options.positions > 0) {
            value =
                value +
                Bounded(inputs[2].values[std::min(position, options.positions - 1) * columns + i]);
          }
          append(y, value);
        }
      }
      return std::vector<CpuTensor>{y};
    };
    return c;
  }
};

}  // namespace

const OpCases& embedding_cases() {
  static const EmbeddingCases cases;
  return cases;
}

}  // namespace mulciber::conformance
