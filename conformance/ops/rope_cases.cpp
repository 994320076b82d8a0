// Cases of rope_append; conformance/op_cases.cpp declares them.
#include <fmt/format.h>

#include <algorithm>

#include "conformance/op_case.h"
#include "conformance/ops/rope_reference.h"
#include "mulciber/error.h"
#include "ops/rope.h"

namespace mulciber::conformance {
namespace {

OpCase rope_append_case(const RopeVariant& v, KernelTypes types) {
  OpCase c;
  c.types = types;
  c.name = fmt::format("r{}_q{}_c{}_h{}x{}_d{}_of{}.at{}", v.rows, v.length, v.context, v.heads,
                       v.kv_heads, v.rotary_size, v.head_size, v.position);
  if (v.value_size > 0) c.name += fmt::format(".values_{}", v.value_size);
  if (!v.values) c.name += ".keys_alone";
  if (v.interleaved) c.name += ".interleaved";
  if (v.gains) c.name += ".gains";
  if (!v.positions.empty()) c.name += ".positions";
  if (v.page > 0) c.name += fmt::format(".pages_{}", v.page);
  if (v.angle_rows > 0) c.name += fmt::format(".angles_{}", v.angle_rows);
  // Fully rotated heads on the short list are the smallest, the largest, and those of 64 and 128.
  // The largest ones, and odd numbers of pairs, are there only with pairs from both halves, not
  // interleaved.
  const bool whole = v.rotary_size == v.head_size && v.length > 2;
  const bool listed =
      v.head_size == 2 || v.head_size == 64 || v.head_size == 128 || v.head_size == 256;
  const bool halves_alone = v.rotary_size % 4 != 0 || v.head_size == 256;
  c.must_pass = (v.rows > 1 || v.rotary_size < v.head_size) && v.gains == v.interleaved &&
                (!whole || listed) && !(halves_alone && v.interleaved);

  const uint64_t columns = uint64_t{v.heads} * v.head_size + v.cache_columns();
  ControlWords control(3, 0xffffffff);
  const ControlArray<uint32_t> positions =
      control.append(v.positions.empty() ? std::vector{v.position} : v.positions);
  std::optional<ControlArray<uint32_t>> pages;
  if (v.page > 0) pages = control.append(v.pages().numbers());
  c.inputs = {normal_input({v.rows, v.length, columns}, types.activation),
              normal_input(v.cache_shape(), types.weight),
              angle_input(v.angle_rows > 0 ? v.angle_rows : v.context, v.rotary_size),
              words_input(control.words())};
  if (v.gains) c.inputs.push_back(normal_input({2, v.head_size}, DataType::kF32));
  c.build = [=](ProgramBuilder& builder, std::span<const Tensor> inputs) {
    RopeOptions options;
    options.heads = v.heads;
    options.kv_heads = v.kv_heads;
    options.head_size = v.head_size;
    options.value_size = v.value_size;
    options.values = v.values;
    options.rotary_size = v.rotary_size;
    options.interleaved = v.interleaved;
    options.angles = inputs[2];
    if (v.gains) options.gains = inputs[4];
    options.epsilon = kRopeEpsilon;
    options.control = inputs[3];
    options.positions = positions;
    options.pages = pages;
    return std::vector<Tensor>{rope_append(builder, inputs[0], inputs[1], options).tensor,
                               inputs[1]};
  };
  c.reference = [=](std::span<const CpuTensor> inputs, const Arithmetic&) {
    return rope_append_reference(v, inputs);
  };
  return c;
}

class RopeAppendCases : public OpCases {
 public:
  std::string shape_format() const override { return "rows,length,heads,kv_heads,head_size"; }
  std::vector<std::vector<uint64_t>> bench_shapes() const override {
    return {{1, 1, 12, 12, 64},
            {1, 1, 32, 8, 128},
            {1, 64, 12, 12, 64},
            {1, 512, 32, 8, 128},
            {8, 1, 32, 8, 128}};
  }
  OpCase make(std::span<const uint64_t> shape, KernelTypes types) const override {
    if (shape.size() != 5 || std::ranges::count(shape, uint64_t{0}) > 0 || shape[4] % 2 != 0) {
      throw ShapeError("rope_append", "a shape is five positive numbers, the last of them even",
                       "give rows,length,heads,kv_heads,head_size such as 1,64,12,12,64");
    }
    const auto head_size = static_cast<uint32_t>(shape[4]);
    return rope_append_case({.heads = static_cast<uint32_t>(shape[2]),
                             .kv_heads = static_cast<uint32_t>(shape[3]),
                             .head_size = head_size,
                             .rotary_size = head_size,
                             .rows = shape[0],
                             .length = shape[1],
                             .context = shape[1] + 8,
                             .position = 5},
                            types);
  }
  std::vector<OpCase> samples(KernelTypes types) const override {
    std::vector<OpCase> cases;
    for (bool interleaved : {false, true}) {
      for (bool gains : {false, true}) {
        const auto add = [&](RopeVariant v) {
          if (v.head_size % block_elements(types.weight) != 0) return;
          v.interleaved = interleaved;
          v.gains = gains;
          cases.push_back(rope_append_case(v, types));
        };
        for (uint32_t head_size : {2, 4, 8, 12, 14, 20, 32, 64, 66, 80, 96, 128, 254, 256}) {
          add({.head_size = head_size,
               .rotary_size = head_size,
               .rows = 2,
               .length = 3,
               .context = 9,
               .position = 4});
        }
        add({.heads = 1,
             .kv_heads = 1,
             .head_size = 64,
             .rotary_size = 16,
             .length = 2,
             .position = 1});
        add({.heads = 3,
             .kv_heads = 2,
             .head_size = 18,
             .rotary_size = 12,
             .rows = 2,
             .position = 7,
             .value_size = 14});
        // An odd number of pairs, in heads that blocks divide and in others.
        for (uint32_t head_size : {16, 64})
          add({.heads = 3,
               .kv_heads = 2,
               .head_size = head_size,
               .rotary_size = head_size - 2,
               .rows = 2,
               .length = 3,
               .context = 24,
               .positions = {5, 19},
               .page = 8});
        // Latent attention's heads.
        add({.heads = 3,
             .kv_heads = 1,
             .head_size = 96,
             .rotary_size = 32,
             .rows = 2,
             .length = 3,
             .position = 4,
             .values = false});
        if (gains && interleaved)
          add({.heads = 2,
               .kv_heads = 1,
               .head_size = 576,
               .rotary_size = 64,
               .rows = 2,
               .length = 2,
               .context = 24,
               .positions = {3, 20},
               .values = false,
               .page = 8});
        add({.heads = 6,
             .kv_heads = 2,
             .head_size = 80,
             .rotary_size = 32,
             .length = 5,
             .position = 2});
        add({.rows = 4, .length = 2, .context = 40, .positions = {39, 5, 17, 38}});
        if (gains == interleaved)
          add({.rows = 3, .length = 7, .context = 24, .positions = {5, 0, 20}, .page = 8});
        // Positions past the end of cache and table: partly, wholly, and so far that position +
        // token wraps around.
        add({.length = 4, .context = 6, .position = 4});
        add({.length = 2, .context = 6, .position = 6, .angle_rows = 4});
        add({.length = 3, .context = 6, .position = 0xfffffffe});
        add({.length = 2, .context = 300, .position = 298, .angle_rows = 512});
        // Above 1 MiB in all: several nodes where the storage range is that small.
        add({.rows = 7,
             .context = 900,
             .positions = {0, 899, 5, 6, 500, 77, 900},
             .angle_rows = 900});
      }
    }
    return cases;
  }
};

}  // namespace

const OpCases& rope_append_cases() {
  static const RopeAppendCases cases;
  return cases;
}

}  // namespace mulciber::conformance
