#include "ops/quantize.h"

#include <fmt/format.h>

#include <algorithm>

#include "mulciber/error.h"
#include "ops/row_slices.h"
#include "runtime/op.h"
#include "shaders/quantize.h"

namespace mulciber {

Tensor quantize(ProgramBuilder& builder, const Tensor& x) {
  constexpr DataType kTo = DataType::kQ8_1;
  const uint64_t columns = x.shape.columns(), block = block_elements(kTo);
  if (x.type != DataType::kF32 || columns == 0 || columns % block != 0) {
    throw ShapeError(builder.path() + ": quantize",
                     fmt::format("{} {} is not f32 in whole blocks of {}", name_of(x.type),
                                 x.shape.to_string(), block),
                     "keep such activations as they are");
  }
  const Tensor y = builder.activation(x.shape, kTo);
  const Kernel& kernel = builder.select({Op::kQuantize, {x.type, kTo}, kAnyShape});
  const uint64_t rows = x.shape.rows(), invocations = local_size(kernel, builder.capabilities());
  const uint64_t step = rows_per_node(builder, x);
  for (uint64_t row = 0; row < rows; row += step) {
    const uint64_t count = std::min(step, rows - row), blocks = count * columns / block;
    Node node;
    node.kernel = &kernel;
    node.buffers = {{x.row_slice(row, count), Access::kRead},
                    {y.row_slice(row, count), Access::kWrite}};
    node.set_params(
        shader::QuantizeParams{static_cast<uint32_t>(columns), static_cast<uint32_t>(blocks)});
    node.groups = {static_cast<uint32_t>((blocks + invocations - 1) / invocations), 1, 1};
    node.work.bytes = count * (row_bytes(x.type, columns) + row_bytes(kTo, columns));
    node.work.flops = count * columns * 3;
    builder.add(std::move(node));
  }
  return y;
}

bool integers_pay(const Capabilities& device, uint64_t rows) {
  constexpr FeatureSet kTwiceAsDeep = kMatrix16x16x32I8 | kMatrix8x16x32I8 | kMatrix8x8x32I8;
  return rows <= 8 || !device.has(kGpu) || (device.features & kF16Operands) == 0 ||
         (device.features & kTwiceAsDeep) != 0;
}

}  // namespace mulciber
