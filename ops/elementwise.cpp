#include "ops/elementwise.h"

#include <fmt/format.h>

#include <algorithm>

#include "mulciber/error.h"
#include "runtime/op.h"
#include "shaders/elementwise.h"

namespace mulciber {
namespace {

constexpr uint64_t kElementsPerInvocation = 4;

/// The formula of y's elements: activation(a [+ b]), or `value` without a; or a scaled, and capped
/// or clipped; or rows of a times their gates in b, or times scales in b; or interleaved pairs of
/// a, activation(first) times second, with an optional limit.
struct Pointwise {
  const Tensor* a = nullptr;
  const Tensor* b = nullptr;
  Activation activation = Activation::kNone;
  float value = 0;
  uint32_t scale = SCALE_NOT;  // SCALE_*, with `value`
  float cap = 0;
  bool gated = false;  // b holds a gate for each row of a
  const RowScales* scales = nullptr;
  bool pairs = false;  // a has twice as many elements

  /// b has values for whole rows of a, so a must not be split.
  bool by_row() const { return gated || scales; }
  uint32_t operand() const {
    if (scales) return OPERAND_SCALES;
    if (pairs) return OPERAND_PAIRS;
    return !b ? OPERAND_NONE : gated ? OPERAND_GATES : OPERAND_ADDED;
  }
};

Tensor pointwise(ProgramBuilder& builder, const char* name, Shape shape, KernelTypes types,
                 const Pointwise& what) {
  if (types.activation == DataType::kU32 || types.weight == DataType::kU32) {
    throw ShapeError(fmt::format("{}: {}", builder.path(), name),
                     "integers have no pointwise operations", "pass f32 or f16 tensors");
  }
  const Kernel& kernel = builder.select({Op::kElementwise, types, kAnyShape});
  const DataType from = types.activation, to = types.weight;
  const Tensor y = builder.activation(shape, to);
  const uint64_t elements = shape.elements();
  const Capabilities& device = builder.capabilities();
  const uint64_t of_a = what.pairs ? 2 : 1;  // elements of a for one of y
  const uint64_t most_bytes = std::max<uint64_t>(of_a * size_of(from), size_of(to));
  uint64_t step = elements;
  if (elements * most_bytes > device.max_storage_range) {
    if (what.by_row())
      throw ShapeError(fmt::format("{}: {}", builder.path(), name),
                       fmt::format("{} passes what one descriptor covers", shape.to_string()),
                       "use fewer tokens at a time");
    step = builder.rows_per_binding(most_bytes);
  }
  const auto slice = [](const Tensor& tensor, uint64_t first, uint64_t count) {
    return tensor.reshaped({tensor.shape.elements(), 1}).row_slice(first, count);
  };
  for (uint64_t first = 0; first < elements; first += step) {
    uint64_t count = std::min(step, elements - first);
    Node node;
    node.kernel = &kernel;
    // Every binding needs a buffer; an absent operand is not read.
    const BufferUse result = {slice(y, first, count), Access::kWrite};
    const BufferUse a =
        what.a ? BufferUse{slice(*what.a, of_a * first, of_a * count), Access::kRead} : result;
    const BufferUse b = !what.b         ? a
                        : what.by_row() ? BufferUse{*what.b, Access::kRead}
                                        : BufferUse{slice(*what.b, first, count), Access::kRead};
    node.buffers = {a, b, result};
    uint64_t invocations = local_size(kernel, device);
    uint64_t groups = (count / kElementsPerInvocation + invocations - 1) / invocations;
    groups = std::clamp<uint64_t>(groups, 1, device.max_groups[0]);
    node.groups = {static_cast<uint32_t>(groups), 1, 1};
    shader::ElementwiseParams params = {.count = static_cast<uint32_t>(count),
                                        .stride = static_cast<uint32_t>(groups * invocations),
                                        .value = what.value,
                                        .cap = what.cap,
                                        .columns = static_cast<uint32_t>(shape.columns())};
    if (const RowScales* scales = what.scales) {
      params.tokens = static_cast<uint32_t>(shape.rows() * scales->per_row / scales->scales.count);
      params.scales = scales->scales.word + scales->first;
      params.scales_per_row = scales->per_row;
      params.scale_count = scales->count;
    }
    node.set_params(params);
    node.constants = {{ELEMENTWISE_OPERAND, what.operand()},
                      {ELEMENTWISE_ACTIVATION, static_cast<uint32_t>(what.activation)},
                      {ELEMENTWISE_FILL, what.a ? 0u : 1u},
                      {ELEMENTWISE_SCALE, what.scale}};
    node.work.bytes =
        count *
        (size_of(from) * ((what.a ? of_a : 0) + (what.b && !what.by_row() ? 1 : 0)) + size_of(to));
    node.work.flops = count;
    builder.add(std::move(node));
  }
  return y;
}

}  // namespace

Tensor add(ProgramBuilder& builder, const Tensor& a, const Tensor& b) {
  if (a.shape != b.shape || a.type != b.type) {
    throw ShapeError(builder.path() + ": add",
                     fmt::format("{} {} and {} {} differ", name_of(a.type), a.shape.to_string(),
                                 name_of(b.type), b.shape.to_string()),
                     "both operands must have one shape and one type");
  }
  return pointwise(builder, "add", a.shape, {a.type, a.type}, {.a = &a, .b = &b});
}

Tensor activate(ProgramBuilder& builder, const Tensor& x, Activation activation) {
  return pointwise(builder, "activate", x.shape, {x.type, x.type},
                   {.a = &x, .activation = activation});
}

Tensor scale_and_cap(ProgramBuilder& builder, const Tensor& x, float scale, float cap) {
  return pointwise(builder, "scale and cap", x.shape, {x.type, x.type},
                   {.a = &x,
                    .value = scale,
                    .scale = cap > 0 ? uint32_t{SCALE_AND_CAP} : uint32_t{SCALE_ONLY},
                    .cap = cap});
}

Tensor clip(ProgramBuilder& builder, const Tensor& x, float limit) {
  return pointwise(builder, "clip", x.shape, {x.type, x.type},
                   {.a = &x, .value = limit, .scale = SCALE_CLIP});
}

Tensor gate_rows(ProgramBuilder& builder, const Tensor& x, const Tensor& gates) {
  if (gates.type != x.type || gates.shape.columns() != 1 || gates.shape.rows() != x.shape.rows()) {
    throw ShapeError(builder.path() + ": gates of rows",
                     fmt::format("{} {} and {} {} do not belong together", name_of(x.type),
                                 x.shape.to_string(), name_of(gates.type), gates.shape.to_string()),
                     "pass one gate for each row, of one type with them");
  }
  return pointwise(builder, "gates of rows", x.shape, {x.type, x.type},
                   {.a = &x, .b = &gates, .gated = true});
}

Tensor scale_by_row(ProgramBuilder& builder, const Tensor& x, const RowScales& scales) {
  const uint32_t all = scales.scales.count, per_row = scales.per_row;
  const bool whole_rows = per_row > 0 && all > 0 && all % per_row == 0 &&
                          x.shape.rows() % (all / per_row) == 0 && x.shape.rows() > 0;
  if (!whole_rows || scales.count == 0 || scales.first + uint64_t{scales.count} > per_row ||
      !fits(scales.scales, all, scales.control)) {
    throw ShapeError(builder.path() + ": scales of rows",
                     fmt::format("{} and {} scales, {} of a row, of which {} from number {} on are "
                                 "used, do not belong together",
                                 x.shape.to_string(), all, per_row, scales.count, scales.first),
                     "pass as many scales for each row, and whole rows");
  }
  return pointwise(builder, "scales of rows", x.shape, {x.type, x.type},
                   {.a = &x, .b = &scales.control, .scales = &scales});
}

Tensor gate_pairs(ProgramBuilder& builder, const Tensor& x, Activation activation, float limit) {
  if (x.shape.columns() % 2 != 0)
    throw ShapeError(builder.path() + ": interleaved gates",
                     fmt::format("{} has an odd number of columns", x.shape.to_string()),
                     "interleave gates and what they gate");
  std::vector<uint64_t> extents(x.shape.rank());
  for (size_t i = 0; i < extents.size(); ++i) extents[i] = x.shape[static_cast<int>(i)];
  extents.back() /= 2;
  return pointwise(builder, "interleaved gates", Shape(std::span<const uint64_t>(extents)),
                   {x.type, x.type},
                   {.a = &x,
                    .activation = activation,
                    .value = limit,
                    .scale = limit > 0 ? uint32_t{SCALE_CLIP} : uint32_t{SCALE_NOT},
                    .pairs = true});
}

Tensor fill(ProgramBuilder& builder, Shape shape, float value, DataType type) {
  return pointwise(builder, "fill", shape, {type, type}, {.value = value});
}

Tensor convert(ProgramBuilder& builder, const Tensor& x, DataType to) {
  return pointwise(builder, "convert", x.shape, {x.type, to}, {.a = &x});
}

}  // namespace mulciber
