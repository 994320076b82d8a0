#include "runtime/ops/elementwise.h"

#include <fmt/format.h>

#include <algorithm>

#include "mulciber/error.h"
#include "shaders/elementwise.h"

namespace mulciber {
namespace {

constexpr uint64_t kElementsPerInvocation = 4;

Tensor pointwise(ProgramBuilder& builder, const char* name, const Tensor& a, const Tensor* b,
                 DataType to, Activation activation) {
  if (a.type == DataType::kU32 || to == DataType::kU32) {
    throw ShapeError(fmt::format("{}: {}", builder.path(), name), "integers have no pointwise operations",
                     "pass f32 or f16 tensors");
  }
  const Kernel& kernel = builder.select({Op::kElementwise, {a.type, to}, kAnyShape});
  Tensor y = builder.activation(a.shape, to);
  uint64_t elements = a.shape.elements();
  const Capabilities& device = builder.capabilities();
  uint64_t step = elements;
  if (std::max(a.bytes(), y.bytes()) > device.max_storage_range) {
    step = builder.rows_per_binding(std::max(size_of(a.type), size_of(to)));
  }
  auto slice = [&](const Tensor& tensor, uint64_t first, uint64_t count) {
    return tensor.reshaped({elements, 1}).row_slice(first, count);
  };
  for (uint64_t first = 0; first < elements; first += step) {
    uint64_t count = std::min(step, elements - first);
    Node node;
    node.kernel = &kernel;
    // Every binding needs a buffer; without a second operand nothing reads the second.
    node.buffers = {{slice(a, first, count), Access::kRead},
                    {slice(b ? *b : a, first, count), Access::kRead},
                    {slice(y, first, count), Access::kWrite}};
    uint64_t invocations = local_size(kernel, device);
    uint64_t groups = (count / kElementsPerInvocation + invocations - 1) / invocations;
    groups = std::clamp<uint64_t>(groups, 1, device.max_groups[0]);
    node.groups = {static_cast<uint32_t>(groups), 1, 1};
    node.set_params(shader::ElementwiseParams{static_cast<uint32_t>(count),
                                              static_cast<uint32_t>(groups * invocations)});
    node.constants = {{ELEMENTWISE_ADD, b ? 1u : 0u},
                      {ELEMENTWISE_ACTIVATION, static_cast<uint32_t>(activation)}};
    node.work.bytes = count * (size_of(a.type) * (b ? 2 : 1) + size_of(to));
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
  return pointwise(builder, "add", a, &b, a.type, Activation::kNone);
}

Tensor activate(ProgramBuilder& builder, const Tensor& x, Activation activation) {
  return pointwise(builder, "activate", x, nullptr, x.type, activation);
}

Tensor convert(ProgramBuilder& builder, const Tensor& x, DataType to) {
  return pointwise(builder, "convert", x, nullptr, to, Activation::kNone);
}

}  // namespace mulciber
