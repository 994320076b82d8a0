// Cases and reference of rms_norm; conformance/op_cases.cpp declares the cases.
#include <fmt/format.h>

#include "conformance/bounds.h"
#include "conformance/op_case.h"
#include "conformance/ops/norm_reference.h"
#include "conformance/q8_1.h"
#include "mulciber/error.h"
#include "ops/norm.h"

namespace mulciber::conformance {
namespace {

enum class RmsNormStream : uint8_t { kNone, kAdded, kNormalized };

struct RmsNormVariant {
  RmsNormStream stream = RmsNormStream::kNone;
  double deviation = 1;  // deviation of x's values
  double epsilon = 1e-6;
};

void put_rms_norm_row(CpuTensor& y, std::span<const Bounded> row) {
  if (y.type == DataType::kQ8_1) return append_q8_1(y, row);
  for (const Bounded& value : row) append(y, value);
}

OpCase rms_norm_case(const Shape& shape, KernelTypes types, RmsNormVariant options) {
  const uint64_t columns = shape.columns(), rows = shape.rows();
  OpCase c;
  c.types = types;
  c.name = fmt::format("r{}_c{}", rows, columns);
  if (shape.rank() > 2) c.name += ".rank3";
  if (options.stream == RmsNormStream::kAdded) c.name += ".stream";
  if (options.stream == RmsNormStream::kNormalized) c.name += ".stream_normalized";
  if (options.deviation != 1) c.name += fmt::format(".deviation_{}", name_part(options.deviation));
  if (options.epsilon != 1e-6) c.name += fmt::format(".epsilon_{}", name_part(options.epsilon));
  c.degenerate = options.deviation == 0;
  c.must_pass = (options.stream == RmsNormStream::kNormalized && edge_of_a_unit(columns)) ||
                options.deviation != 1 || options.epsilon != 1e-6;

  const bool normalized = options.stream == RmsNormStream::kNormalized,
             streaming = options.stream != RmsNormStream::kNone;
  c.inputs = {normal_input(shape, types.activation, options.deviation),
              normal_input(normalized ? Shape{2, columns} : Shape{columns}, DataType::kF32)};
  if (streaming)
    c.inputs.push_back(normal_input(shape, types.activation, options.deviation == 0 ? 0 : 1));
  const auto epsilon = static_cast<float>(options.epsilon);
  c.build = [=](ProgramBuilder& builder, std::span<const Tensor> inputs) {
    if (!streaming)
      return std::vector<Tensor>{rms_norm(builder, inputs[0], inputs[1], epsilon, types.weight)};
    return std::vector<Tensor>{
        add_rms_norm(builder, inputs[2], inputs[0], inputs[1], epsilon, types.weight), inputs[2]};
  };
  c.reference = [=](std::span<const CpuTensor> inputs, const Arithmetic&) {
    CpuTensor y{shape, types.weight, {}, {}}, stream{shape, types.activation, {}, {}};
    const std::vector<double>& gains = inputs[1].values;
    std::vector<Bounded> values(columns);
    for (uint64_t row = 0; row < rows; ++row) {
      for (uint64_t i = 0; i < columns; ++i)
        values[i] = Bounded(inputs[0].values[row * columns + i]);
      if (normalized) {
        rms_norm_reference(values, epsilon);
        for (uint64_t i = 0; i < columns; ++i) values[i] = values[i] * Bounded(gains[i]);
      }
      for (uint64_t i = 0; i < columns && streaming; ++i) {
        values[i] = values[i] + Bounded(inputs[2].values[row * columns + i]);
        append(stream, values[i]);
      }
      rms_norm_reference(values, epsilon);
      for (uint64_t i = 0; i < columns; ++i)
        values[i] = values[i] * Bounded(gains[normalized ? columns + i : i]);
      put_rms_norm_row(y, values);
    }
    if (!streaming) return std::vector<CpuTensor>{y};
    return std::vector<CpuTensor>{y, stream};
  };
  return c;
}

class RmsNormCases : public OpCases {
 public:
  std::string shape_format() const override { return "rows,columns"; }

  std::vector<std::vector<uint64_t>> bench_shapes() const override {
    return {{1, 768}, {1, 2048}, {64, 768}, {64, 2048}, {512, 2048}};
  }

  // The norm of a decoder layer: the sublayer's result is added to the stream.
  OpCase make(std::span<const uint64_t> shape, KernelTypes types) const override {
    if (shape.size() != 2 || shape[0] == 0 || shape[1] == 0) {
      throw ShapeError("rms norm", "a shape is two positive numbers",
                       "give rows,columns such as 64,2048");
    }
    return rms_norm_case({shape[0], shape[1]}, types, {.stream = RmsNormStream::kAdded});
  }

  std::vector<OpCase> samples(KernelTypes types) const override {
    std::vector<OpCase> cases;
    auto add = [&](Shape shape, RmsNormVariant options = {}) {
      if (shape.columns() % block_elements(types.weight) == 0)
        cases.push_back(rms_norm_case(shape, types, options));
    };
    for (uint64_t columns : {1,   2,   3,   4,   7,   8,   31,  32,  33,   63,   64,   65,
                             127, 128, 129, 255, 256, 257, 640, 768, 1021, 1024, 1152, 2052}) {
      add({3, columns});
      add({2, columns}, {.stream = RmsNormStream::kAdded});
      add({3, columns}, {.stream = RmsNormStream::kNormalized});
    }
    for (RmsNormStream stream :
         {RmsNormStream::kNone, RmsNormStream::kAdded, RmsNormStream::kNormalized}) {
      add({97, 96}, {.stream = stream});
      add({3, 5, 40}, {.stream = stream});
      add({301, 1029},
          {.stream =
               stream});  // above 1 MiB in f32: several nodes where the storage range is that small
      add({5, 67}, {.stream = stream, .epsilon = 1e-12});
      add({5, 128}, {.stream = stream, .deviation = 1e-3});
      add({5, 768}, {.stream = stream, .deviation = 100});
      add({6, 100}, {.stream = stream, .deviation = 0});  // zeros: only epsilon under the root
    }
    if (types.activation == DataType::kF32) add({4, 64}, {.deviation = 1e15});
    return cases;
  }
};

}  // namespace

const OpCases& rms_norm_cases() {
  static const RmsNormCases cases;
  return cases;
}

}  // namespace mulciber::conformance
