// Cases and reference of append_cache; conformance/op_cases.cpp declares the cases.
#include <fmt/format.h>

#include "conformance/block_input.h"
#include "conformance/bounds.h"
#include "conformance/op_case.h"
#include "conformance/ops/page_table.h"
#include "mulciber/error.h"
#include "ops/append_cache.h"

namespace mulciber::conformance {
namespace {

struct AppendCacheVariant {
  uint64_t rows = 1, q_len = 1, context = 1, columns = 1;
  uint32_t position = 0;
  uint32_t first_column = 0;             // column of x
  uint32_t spare = 0;                    // columns of x after those that are copied
  bool exact = false;                    // whole numbers, which every type represents
  std::vector<uint32_t> positions = {};  // one for each row
  uint32_t page = 0;                     // positions of a page; 0: contiguous rows

  PageTable pages() const { return {page, rows, context}; }
};

OpCase append_cache_case(const AppendCacheVariant& v, KernelTypes types) {
  OpCase c;
  c.name = fmt::format("r{}_q{}_c{}x{}.at{}", v.rows, v.q_len, v.context, v.columns, v.position);
  if (v.first_column + v.spare > 0)
    c.name += fmt::format("_from{}_of{}", v.first_column, v.first_column + v.columns + v.spare);
  if (!v.positions.empty()) c.name += ".positions";
  c.types = types;
  ControlWords control(std::vector<uint32_t>{7, 9});
  const ControlArray<uint32_t> positions =
      control.append(v.positions.empty() ? std::vector{v.position} : v.positions);
  std::optional<ControlArray<uint32_t>> pages;
  if (v.page > 0) {
    pages = control.append(v.pages().numbers());
    c.name += fmt::format(".pages_{}", v.page);
  }
  control.append(std::vector{11u});
  // Nothing is computed: without a conversion every bit must arrive.
  c.exact = v.exact || types.activation == types.weight;
  if (v.exact) c.name += ".exact";
  const auto values = [&](Shape shape, DataType type) {
    return v.exact ? whole_input(shape, type, 2000) : normal_input(shape, type);
  };
  c.inputs = {values({v.rows, v.q_len, v.first_column + v.columns + v.spare}, types.activation),
              values(v.page > 0 ? Shape{v.pages().pool(), v.page, v.columns}
                                : Shape{v.rows, v.context, v.columns},
                     types.weight),
              words_input(control.words())};
  c.build = [=](ProgramBuilder& builder, std::span<const Tensor> inputs) {
    append_cache(builder, inputs[0], inputs[1], {v.first_column, inputs[2], positions, pages});
    return std::vector<Tensor>{inputs[1]};
  };
  c.reference = [=](std::span<const CpuTensor> inputs, const Arithmetic&) {
    const CpuTensor& x = inputs[0];
    CpuTensor cache = inputs[1];
    cache.bounds.assign(cache.values.size(), 0);
    for (uint64_t row = 0; row < v.rows; ++row) {
      const uint64_t position = v.positions.empty() ? v.position : v.positions[row];
      for (uint64_t i = 0; i < v.q_len && position + i < v.context; ++i) {
        const size_t to = v.pages().place(row, position + i) * v.columns;
        const auto from =
            x.values.begin() +
            static_cast<std::ptrdiff_t>((row * v.q_len + i) * x.shape.columns() + v.first_column);
        if (is_block_type(types.weight)) {
          const std::vector<Bounded> columns(from, from + static_cast<std::ptrdiff_t>(v.columns));
          put_q8_0(cache, to, columns);
          continue;
        }
        for (uint64_t column = 0; column < v.columns; ++column)
          put(cache, to + column, from[static_cast<std::ptrdiff_t>(column)]);
      }
    }
    return std::vector<CpuTensor>{cache};
  };
  return c;
}

class AppendCacheCases : public OpCases {
 public:
  std::string shape_format() const override { return "rows,q_len,context,columns"; }
  bool exact(KernelTypes types) const override { return !is_block_type(types.weight); }
  std::vector<std::vector<uint64_t>> bench_shapes() const override {
    return {{1, 512, 512, 1536}, {80, 1, 64, 256}, {1, 1, 512, 1536}};
  }
  OpCase make(std::span<const uint64_t> shape, KernelTypes types) const override {
    if (shape.size() != 4 || shape[0] == 0 || shape[1] == 0 || shape[2] == 0 || shape[3] == 0) {
      throw ShapeError("append_cache", "a shape is four positive numbers",
                       "give rows,q_len,context,columns such as 80,1,64,256");
    }
    return append_cache_case({shape[0], shape[1], shape[2], shape[3]}, types);
  }
  std::vector<OpCase> samples(KernelTypes types) const override {
    std::vector<OpCase> cases;
    auto add = [&](const AppendCacheVariant& v) { cases.push_back(append_cache_case(v, types)); };
    if (is_block_type(types.weight)) {
      // One block, an odd number (the last scale has a word of its own), and more than a workgroup.
      for (uint64_t columns : {32, 64, 96, 160, 1024, 2080}) {
        add({.rows = 2, .q_len = 1, .context = 5, .columns = columns, .position = 3});
        add({.rows = 3, .q_len = 4, .context = 9, .columns = columns, .position = 7});
      }
      add({.rows = 2,
           .q_len = 3,
           .context = 7,
           .columns = 96,
           .position = 1,
           .first_column = 7,
           .spare = 2});
      add({.rows = 2, .q_len = 3, .context = 6, .columns = 64, .position = 0xfffffffe});
      add({.rows = 4, .q_len = 2, .context = 6, .columns = 96, .positions = {3, 0, 5, 2}});
      add({.rows = 3,
           .q_len = 7,
           .context = 24,
           .columns = 96,
           .positions = {5, 0, 20},
           .page = 8});
      add({.rows = 5,
           .q_len = 1,
           .context = 500,
           .columns = 1024,
           .positions = {1, 5, 199, 499, 77}});
      return cases;
    }
    // Widths of one, odd (halves share a word with the neighbouring position), and more than a
    // workgroup.
    for (uint64_t columns : {1, 2, 3, 63, 64, 65, 127, 128, 129, 515}) {
      add({.rows = 2, .q_len = 1, .context = 5, .columns = columns, .position = 3});
      add({.rows = 3, .q_len = 4, .context = 9, .columns = columns, .position = 2});
      add({.rows = 2, .q_len = 3, .context = 8, .columns = columns, .position = 5, .exact = true});
    }
    add({.rows = 1, .q_len = 1, .context = 1, .columns = 1});
    add({.rows = 2,
         .q_len = 3,
         .context = 7,
         .columns = 48,
         .position = 1,
         .first_column = 16,
         .spare = 5});
    add({.rows = 2,
         .q_len = 3,
         .context = 7,
         .columns = 33,
         .position = 4,
         .first_column = 7,
         .spare = 2});
    // Positions past the end: partly, wholly, and so far that position + query wraps around.
    add({.rows = 2, .q_len = 4, .context = 6, .columns = 40, .position = 4});
    add({.rows = 2, .q_len = 2, .context = 6, .columns = 40, .position = 6});
    add({.rows = 2, .q_len = 3, .context = 6, .columns = 40, .position = 0xfffffffe});
    for (uint64_t columns : {40, 33}) {
      add({.rows = 4, .q_len = 2, .context = 6, .columns = columns, .positions = {3, 0, 5, 2}});
    }
    for (uint64_t columns : {40, 33}) {
      add({.rows = 3,
           .q_len = 7,
           .context = 24,
           .columns = columns,
           .positions = {5, 0, 20},
           .page = 8});
    }
    add({.rows = 80, .q_len = 1, .context = 12, .columns = 256, .position = 11});
    // Several MiB in all, with each row below 1 MiB, the least range that a binding must support.
    add({.rows = 9, .q_len = 1, .context = 200, .columns = 1024, .position = 199});
    add({.rows = 5, .q_len = 1, .context = 200, .columns = 1024, .positions = {1, 5, 199, 0, 77}});
    return cases;
  }
};

}  // namespace

const OpCases& append_cache_cases() {
  static const AppendCacheCases cases;
  return cases;
}

}  // namespace mulciber::conformance
