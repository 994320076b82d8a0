#include "ops/elementwise.h"

#include <fmt/format.h>

#include <algorithm>

#include "mulciber/error.h"
#include "runtime/op.h"
#include "shaders/elementwise.h"

namespace mulciber {
namespace {

constexpr uint64_t kElementsPerInvocation = 4;

/// What y's elements are: activation(a [+ b]), or `value` where there is no a; or a scaled, and
/// capped or clipped; or its rows times their gates in b.
struct Pointwise {
  const Tensor* a = nullptr;
  const Tensor* b = nullptr;
  Activation activation = Activation::kNone;
  float value = 0;
  uint32_t scale = SCALE_NOT;  // by value
  float cap = 0;
  bool gated = false;  // b holds a gate for each row of a
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
  uint64_t step = elements;
  if (elements * std::max(size_of(from), size_of(to)) > device.max_storage_range) {
    if (what.gated)
      throw ShapeError(fmt::format("{}: {}", builder.path(), name),
                       fmt::format("{} passes what one descriptor covers", shape.to_string()),
                       "use fewer tokens at a time");
    step = builder.rows_per_binding(std::max(size_of(from), size_of(to)));
  }
  const auto slice = [&](const Tensor& tensor, uint64_t first, uint64_t count) {
    return tensor.reshaped({elements, 1}).row_slice(first, count);
  };
  for (uint64_t first = 0; first < elements; first += step) {
    uint64_t count = std::min(step, elements - first);
    Node node;
    node.kernel = &kernel;
    // Every binding needs a buffer; what is no operand is not read.
    const BufferUse result = {slice(y, first, count), Access::kWrite};
    const BufferUse a = what.a ? BufferUse{slice(*what.a, first, count), Access::kRead} : result;
    const BufferUse b = !what.b      ? a
                        : what.gated ? BufferUse{*what.b, Access::kRead}
                                     : BufferUse{slice(*what.b, first, count), Access::kRead};
    node.buffers = {a, b, result};
    uint64_t invocations = local_size(kernel, device);
    uint64_t groups = (count / kElementsPerInvocation + invocations - 1) / invocations;
    groups = std::clamp<uint64_t>(groups, 1, device.max_groups[0]);
    node.groups = {static_cast<uint32_t>(groups), 1, 1};
    node.set_params(shader::ElementwiseParams{
        static_cast<uint32_t>(count), static_cast<uint32_t>(groups * invocations), what.value,
        what.cap, static_cast<uint32_t>(shape.columns())});
    node.constants = {{ELEMENTWISE_OPERAND, !what.b      ? uint32_t{OPERAND_NONE}
                                            : what.gated ? uint32_t{OPERAND_GATES}
                                                         : uint32_t{OPERAND_ADDED}},
                      {ELEMENTWISE_ACTIVATION, static_cast<uint32_t>(what.activation)},
                      {ELEMENTWISE_FILL, what.a ? 0u : 1u},
                      {ELEMENTWISE_SCALE, what.scale}};
    node.work.bytes = count * (size_of(from) * ((what.a ? 1 : 0) + (what.b ? 1 : 0)) + size_of(to));
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

Tensor fill(ProgramBuilder& builder, Shape shape, float value, DataType type) {
  return pointwise(builder, "fill", shape, {type, type}, {.value = value});
}

Tensor convert(ProgramBuilder& builder, const Tensor& x, DataType to) {
  return pointwise(builder, "convert", x.shape, {x.type, to}, {.a = &x});
}

}  // namespace mulciber
