#include "ops/head_matmul.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "base/blocks.h"
#include "mulciber/error.h"
#include "ops/row_slices.h"
#include "runtime/op.h"
#include "shaders/head_matmul.h"

namespace mulciber {
namespace {

[[noreturn]] void refuse_head_matmul(const ProgramBuilder& builder, std::string problem,
                                     std::string remedy) {
  throw ShapeError(builder.path() + ": head_matmul", std::move(problem), std::move(remedy));
}

/// Rows of the weight for one head.
uint64_t head_rows(const HeadMatmulOptions& options) {
  return options.transposed ? options.depth : options.columns;
}

void check(const ProgramBuilder& builder, const Tensor& x, const Tensor& weight, const Tensor& y,
           const HeadMatmulOptions& o) {
  if (o.heads == 0 || o.depth == 0 || o.columns == 0 || x.shape.elements() == 0 ||
      y.type != x.type || x.shape.rows() != y.shape.rows()) {
    refuse_head_matmul(builder,
                       fmt::format("x is {} {}, y {} {}, of {} heads of {} by {}", name_of(x.type),
                                   x.shape.to_string(), name_of(y.type), y.shape.to_string(),
                                   o.heads, o.columns, o.depth),
                       "x and y have one type and as many rows");
  }
  const uint64_t before = o.heads - uint64_t{1};
  const auto passes = [&](const char* what, uint64_t end, uint64_t all) {
    if (end <= all) return;
    refuse_head_matmul(
        builder,
        fmt::format("{} heads end at {} {}, of which there are {}", o.heads, what, end, all),
        "give what is wider, or fewer heads");
  };
  passes("column of x", o.x_first + before * o.x_step + o.depth, x.shape.columns());
  passes("column of y", o.y_first + before * o.y_step + o.columns, y.shape.columns());
  passes("row of the weight", o.weight_first + before * o.weight_step + head_rows(o),
         weight.shape.rows());
  if (o.heads > 1 && o.y_step < o.columns)
    refuse_head_matmul(builder,
                       fmt::format("heads of {} columns are {} apart in y", o.columns, o.y_step),
                       "heads of y share no column");
  const uint32_t along = o.transposed ? o.columns : o.depth;
  if (weight.shape.rank() != 2 || weight.shape.columns() != along)
    refuse_head_matmul(builder, fmt::format("the weight is {}", weight.shape.to_string()),
                       fmt::format("its rows must have {} columns", along));
  const bool halves = x.type == DataType::kF16;
  const uint64_t odd = x.shape.columns() | y.shape.columns() | o.columns | o.y_first | o.y_step;
  if ((size_of(weight.type) == 2 && along % 2 != 0) || (halves && odd % 2 != 0))
    refuse_head_matmul(builder,
                       fmt::format("{} columns of depth {} end inside a word", o.columns, o.depth),
                       "16-bit sizes and offsets must be even");
  const uint64_t range = builder.capabilities().max_storage_range;
  for (const Tensor* part : {&x, &y})
    if (part->bytes() > range)
      refuse_head_matmul(builder,
                         fmt::format("{} of {} bytes pass what one descriptor covers",
                                     part->shape.to_string(), part->bytes()),
                         "use fewer tokens at a time");
}

/// Number of heads whose matrices one node binds, such that each part begins aligned.
uint64_t bound_heads(const ProgramBuilder& builder, const Tensor& weight,
                     const HeadMatmulOptions& options) {
  const uint64_t range = builder.capabilities().max_storage_range;
  if (weight.bytes() <= range || options.weight_step == 0) return options.heads;
  constexpr uint64_t kAlignment = 256;
  const uint64_t head_bytes = options.weight_step * row_bytes(weight.type, weight.shape.columns());
  const uint64_t step = kAlignment / std::gcd(head_bytes, kAlignment);
  const uint64_t heads = range / head_bytes / step * step;
  if (heads == 0)
    refuse_head_matmul(builder,
                       fmt::format("{} heads of {} bytes pass the {} that one descriptor covers",
                                   step, head_bytes, range),
                       "use a device with a larger storage range");
  return heads;
}

}  // namespace

void head_matmul(ProgramBuilder& builder, const Tensor& x, const Tensor& weight, const Tensor& y,
                 const HeadMatmulOptions& options) {
  check(builder, x, weight, y, options);
  const HeadMatmulOptions& o = options;
  const uint64_t rows = x.shape.rows(), selected = builder.rows_as(rows);
  uint64_t divisor = 0;
  for (uint64_t extent :
       {uint64_t{o.depth}, uint64_t{o.columns}, uint64_t{o.x_first}, uint64_t{o.x_step},
        uint64_t{o.y_first}, uint64_t{o.y_step}, x.shape.columns(), y.shape.columns()})
    divisor = std::gcd(divisor, extent);
  ShapeFacts facts = selected <= 8 ? kRowsAtMost8 : kRowsAbove8;
  if (selected == 1) facts |= kOneRow;
  if (divisor % 4 == 0) facts |= kDepthMultipleOf4;
  const Kernel& kernel = builder.select({Op::kHeadMatmul, {x.type, weight.type}, facts});
  std::vector<SpecializationConstant> constants = {{HEAD_MATMUL_TRANSPOSED, o.transposed ? 1u : 0u},
                                                   {HEAD_MATMUL_ADD, o.add ? 1u : 0u}};
  if (const uint32_t format = block_format(weight.type); format != 0)
    constants.push_back({WEIGHT_FORMAT, format});
  const uint64_t invocations = local_size(kernel, builder.capabilities()),
                 quads = (o.columns + 3) / 4;
  const std::optional<uint32_t> tile = kernel.find(RowConstant::TILE_M);
  const std::optional<uint32_t> tile_n = kernel.find(RowConstant::TILE_N);
  const uint64_t across = tile_n ? *tile_n / 4 : invocations;  // quads per workgroup
  const uint64_t groups = tile ? (rows + *tile - 1) / *tile * ((quads + across - 1) / across)
                               : (rows * quads + invocations - 1) / invocations;
  const uint64_t step = bound_heads(builder, weight, options);
  for (uint64_t first = 0; first < o.heads; first += step) {
    const uint64_t heads = std::min<uint64_t>(step, o.heads - first);
    const uint64_t weight_rows = (heads - 1) * o.weight_step + head_rows(o);
    const bool whole = step >= o.heads;
    const uint64_t bound_first = whole ? 0 : first * o.weight_step;
    const uint64_t bound_rows =
        whole ? weight.shape.rows()
              : std::min(weight.shape.rows() - bound_first, o.weight_first + weight_rows);
    Node node;
    node.kernel = &kernel;
    node.buffers = {{x, Access::kRead},
                    {weight.row_slice(bound_first, bound_rows), Access::kRead},
                    {y, o.add ? Access::kReadWrite : Access::kWrite}};
    node.set_params(
        shader::HeadMatmulParams{.rows = static_cast<uint32_t>(rows),
                                 .depth = o.depth,
                                 .columns = o.columns,
                                 .x_columns = static_cast<uint32_t>(x.shape.columns()),
                                 .x_first = o.x_first + static_cast<uint32_t>(first) * o.x_step,
                                 .x_step = o.x_step,
                                 .y_columns = static_cast<uint32_t>(y.shape.columns()),
                                 .y_first = o.y_first + static_cast<uint32_t>(first) * o.y_step,
                                 .y_step = o.y_step,
                                 .weight_columns = static_cast<uint32_t>(weight.shape.columns()),
                                 .weight_first = o.weight_first,
                                 .weight_step = o.weight_step});
    node.constants = constants;
    node.groups = {groups_for(builder, groups), static_cast<uint32_t>(heads), 1};
    const uint64_t matrices = o.weight_step == 0 ? 1 : heads;
    node.work.bytes =
        rows * heads * (o.depth + (o.add ? 2 : 1) * uint64_t{o.columns}) * size_of(x.type) +
        matrices * head_rows(o) * row_bytes(weight.type, weight.shape.columns());
    node.work.flops = 2 * rows * heads * o.depth * o.columns;
    builder.add(std::move(node));
  }
}

}  // namespace mulciber
