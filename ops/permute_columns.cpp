#include "ops/permute_columns.h"

#include <algorithm>

#include <fmt/format.h>

#include "mulciber/error.h"
#include "ops/row_slices.h"
#include "runtime/op.h"
#include "shaders/permute_columns.h"

namespace mulciber {

Tensor permute_columns(ProgramBuilder& builder, const Tensor& x, const Tensor& order) {
  const uint64_t columns = x.shape.columns();
  if (x.type != DataType::kF32 || order.type != DataType::kU32 ||
      order.shape.elements() != columns || columns == 0) {
    throw ShapeError(builder.path() + ": order of columns",
                     fmt::format("{} {} for {} {}", name_of(order.type), order.shape.to_string(),
                                 name_of(x.type), x.shape.to_string()),
                     "x must be f32, and there must be a u32 for each of its columns");
  }
  const Kernel& kernel = builder.select({Op::kPermuteColumns, {x.type, x.type}, kAnyShape});
  const Tensor y = builder.activation(x.shape, x.type);
  const uint64_t row_step = rows_per_node(builder, x);
  const uint64_t invocations = local_size(kernel, builder.capabilities());
  for (uint64_t row = 0; row < x.shape.rows(); row += row_step) {
    const uint64_t rows = std::min(row_step, x.shape.rows() - row);
    const Tensor part = x.row_slice(row, rows), to = y.row_slice(row, rows);
    const uint64_t count = part.shape.elements();
    const uint64_t groups = (count + invocations - 1) / invocations;
    const uint64_t wide = std::min<uint64_t>(groups, builder.capabilities().max_groups[0]);
    Node node;
    node.kernel = &kernel;
    node.buffers = {{part, Access::kRead}, {order, Access::kRead}, {to, Access::kWrite}};
    node.set_params(
        shader::PermuteColumnsParams{static_cast<uint32_t>(count), static_cast<uint32_t>(columns)});
    node.groups = {static_cast<uint32_t>(wide), static_cast<uint32_t>((groups + wide - 1) / wide),
                   1};
    node.work.bytes = 2 * part.bytes() + order.bytes();
    builder.add(std::move(node));
  }
  return y;
}

}  // namespace mulciber
