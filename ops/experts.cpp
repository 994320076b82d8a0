#include "ops/experts.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include <fmt/format.h>

#include "base/blocks.h"
#include "mulciber/error.h"
#include "ops/copy.h"
#include "ops/elementwise.h"
#include "ops/row_slices.h"
#include "runtime/op.h"
#include "shaders/experts.h"

namespace mulciber {
namespace {

[[noreturn]] void refuse_experts(const ProgramBuilder& builder, std::string problem,
                                 std::string remedy) {
  throw ShapeError(builder.path() + ": expert_matmul", std::move(problem), std::move(remedy));
}

/// Whether there are enough tokens per expert to gather them by expert: loaded weights then serve
/// several tokens, which takes registers for as many sums.
bool gathers(const Capabilities& device, const Tensor& x, const Tensor& weight,
             const Tensor& routes) {
  const uint64_t count = routes.shape[0] * routes.shape[1];
  if (device.has(kGpu) && !device.has(kLargeTiles)) return false;
  return x.type == DataType::kF32 && count > 8 && count >= 2 * weight.shape[0];
}

/// Most rows of the matrices that one node binds, such that each part begins aligned. Rows that
/// share a word of the result stay together: a gate and its value, and two halves.
uint64_t bound_rows(const ProgramBuilder& builder, const Tensor& x, const Tensor& weight,
                    const ExpertOptions& options) {
  constexpr uint64_t kAlignment = 256;
  const uint64_t bytes = row_bytes(weight.type, weight.shape.columns());
  const uint64_t range = builder.capabilities().max_storage_range,
                 most = std::min(options.bound_bytes.value_or(range), range);
  if (weight.bytes() <= most) return weight.shape.rows();
  const uint64_t together = (options.gated ? 2 : 1) * (x.type == DataType::kF16 ? 2 : 1);
  const uint64_t step = together * (kAlignment / std::gcd(together * bytes, kAlignment));
  const uint64_t rows = most / bytes / step * step;
  if (rows == 0)
    refuse_experts(builder,
                   fmt::format("{} rows of {} bytes pass the {} that one descriptor covers", step,
                               bytes, most),
                   "use a device with a larger storage range");
  return rows;
}

}  // namespace

Tensor expert_sum(ProgramBuilder& builder, const Tensor& x, const Tensor& routes, bool normalize) {
  if (x.type != DataType::kF32 || x.shape.rank() != 3 || x.shape.elements() == 0 ||
      routes.type != DataType::kU32 || routes.shape != Shape{x.shape[0], x.shape[1], uint64_t{2}} ||
      x.bytes() > builder.capabilities().max_storage_range) {
    throw ShapeError(
        builder.path() + ": expert_sum",
        fmt::format("x is {} {}, routes are {} {}", name_of(x.type), x.shape.to_string(),
                    name_of(routes.type), routes.shape.to_string()),
        "pass (tokens, experts_per_token, N) f32 and (tokens, experts_per_token, 2) "
        "u32, or fewer tokens at a time");
  }
  const Kernel& kernel = builder.select({Op::kExpertSum, {DataType::kF32}, kAnyShape});
  const Tensor y = builder.activation({x.shape[0], x.shape[2]}, x.type);
  Node node;
  node.kernel = &kernel;
  node.buffers = {{x, Access::kRead}, {routes, Access::kRead}, {y, Access::kWrite}};
  node.set_params(shader::ExpertParams{.rows = static_cast<uint32_t>(x.shape[0]),
                                       .columns = static_cast<uint32_t>(x.shape[2]),
                                       .experts_per_token = static_cast<uint32_t>(x.shape[1])});
  node.constants = {{EXPERT_NORMALIZE, normalize ? 1u : 0u}};
  const uint64_t invocations = local_size(kernel, builder.capabilities());
  node.groups = {groups_for(builder, (y.shape.elements() + invocations - 1) / invocations), 1, 1};
  node.work.bytes = x.bytes() + y.bytes() + routes.bytes();
  node.work.flops = 2 * x.shape.elements();
  builder.add(std::move(node));
  return y;
}

Tensor expert_matmul(ProgramBuilder& builder, const Tensor& x, const Tensor& weight,
                     const Tensor& routes, const ExpertOptions& options) {
  if (routes.type != DataType::kU32 || routes.shape.rank() != 3 || routes.shape[2] != 2 ||
      routes.shape.elements() == 0) {
    refuse_experts(builder,
                   fmt::format("routes are {} {}", name_of(routes.type), routes.shape.to_string()),
                   "pass (tokens, experts_per_token, 2) u32, as top_k makes it");
  }
  if (weight.shape.rank() != 3 || weight.shape.elements() == 0) {
    refuse_experts(builder, fmt::format("the weight is {}", weight.shape.to_string()),
                   "pass (experts, N, K)");
  }
  const uint64_t tokens = routes.shape[0], experts_per_token = routes.shape[1],
                 depth = weight.shape[2];
  const uint64_t matrix_rows = weight.shape[1],
                 columns = options.gated ? matrix_rows / 2 : matrix_rows;
  const Shape expected =
      options.combine ? Shape{tokens, experts_per_token, depth} : Shape{tokens, depth};
  if (x.shape != expected) {
    refuse_experts(builder, fmt::format("x is {}", x.shape.to_string()),
                   fmt::format("{} tokens with {} routes each and a depth of {} need {}", tokens,
                               experts_per_token, depth, expected.to_string()));
  }
  if (options.gated && matrix_rows % 2 != 0)
    refuse_experts(builder, fmt::format("{} gated rows", matrix_rows), "gates come in pairs");
  const uint64_t all_rows = weight.shape.rows(), step = bound_rows(builder, x, weight, options);
  const bool gather = gathers(builder.capabilities(), x, weight, routes);
  if (options.combine && (gather || step < all_rows)) {
    // Experts do not add to each other's sums: each route first gets a row, as if it were a token.
    const uint64_t count = tokens * experts_per_token;
    ExpertOptions apart = options;
    apart.combine = false;
    Tensor parts = expert_matmul(builder, x.reshaped({count, depth}), weight,
                                 routes.reshaped({count, 1, 2}), apart);
    parts = parts.reshaped({tokens, experts_per_token, columns});
    if (x.type == DataType::kF32) return expert_sum(builder, parts, routes, options.normalize);
    return convert(
        builder,
        expert_sum(builder, convert(builder, parts, DataType::kF32), routes, options.normalize),
        x.type);
  }
  const bool halves = x.type == DataType::kF16;
  if ((halves || size_of(weight.type) == 2) && (depth % 2 != 0 || (halves && columns % 2 != 0))) {
    refuse_experts(builder, fmt::format("{} columns of depth {} end inside a word", columns, depth),
                   "16-bit sizes must be even");
  }
  if (options.bias && (options.bias->type != DataType::kF32 ||
                       options.bias->shape.elements() != weight.shape[0] * matrix_rows)) {
    refuse_experts(
        builder,
        fmt::format("the bias is {} {}", name_of(options.bias->type),
                    options.bias->shape.to_string()),
        fmt::format("it must be f32, one for each of {} x {} rows", weight.shape[0], matrix_rows));
  }
  const Tensor y = options.combine
                       ? builder.activation({tokens, columns}, x.type)
                       : builder.activation({tokens, experts_per_token, columns}, x.type);
  const uint64_t range = builder.capabilities().max_storage_range;
  for (const Tensor* part : {&x, &y}) {
    if (part->bytes() > range) {
      refuse_experts(builder,
                     fmt::format("{} of {} bytes pass what one descriptor covers",
                                 part->shape.to_string(), part->bytes()),
                     "use fewer tokens at a time");
    }
  }

  const Kernel& kernel = builder.select(
      {Op::kExpertMatmul,
       {x.type, weight.type},
       (depth % 4 == 0 ? kDepthMultipleOf4 : kAnyShape) | (gather ? kRowsAbove8 : kRowsAtMost8)});
  Tensor control = routes;
  if (options.bias) {
    const Tensor parts[] = {routes, *options.bias};
    control = concatenate_words(builder, parts);
  }
  std::vector<SpecializationConstant> constants = {
      {EXPERT_COMBINE, options.combine ? 1u : 0u},
      {EXPERT_NORMALIZE, options.normalize ? 1u : 0u},
      {EXPERT_GATED, options.gated ? 1u : 0u},
      {EXPERT_ACTIVATION, static_cast<uint32_t>(options.activation)},
      {EXPERT_BIAS, options.bias ? 1u : 0u},
      {EXPERT_LIMIT, std::bit_cast<uint32_t>(options.limit)},
      {EXPERT_PART, step < all_rows ? 1u : 0u}};
  if (const uint32_t format = block_format(weight.type); format != 0)
    constants.push_back({WEIGHT_FORMAT, format});
  const uint64_t per_group =
      uint64_t{local_size(kernel, builder.capabilities())} * (halves ? 2 : 1);
  const std::optional<uint32_t> tile = kernel.find(RowConstant::TILE_N);  // columns per workgroup
  const bool by_expert = kernel.find(RowConstant::TILE_M).has_value();
  const uint64_t groups =
      tile ? (by_expert ? weight.shape[0] : y.shape.rows()) * ((columns + *tile - 1) / *tile)
           : (y.shape.elements() + per_group - 1) / per_group;
  const uint64_t read_experts = std::min(weight.shape[0], tokens * experts_per_token);
  const uint64_t bytes = x.bytes() + y.bytes() + routes.bytes() +
                         read_experts * matrix_rows * row_bytes(weight.type, depth),
                 flops = 2 * tokens * experts_per_token * matrix_rows * depth;
  for (uint64_t first = 0; first < all_rows; first += step) {
    const uint64_t rows = std::min(step, all_rows - first);
    Node node;
    node.kernel = &kernel;
    node.buffers = {{x, Access::kRead},
                    {weight.row_slice(first, rows), Access::kRead},
                    {control, Access::kRead},
                    {y, Access::kWrite}};
    node.set_params(
        shader::ExpertParams{.rows = static_cast<uint32_t>(y.shape.rows()),
                             .columns = static_cast<uint32_t>(columns),
                             .depth = static_cast<uint32_t>(depth),
                             .experts = static_cast<uint32_t>(weight.shape[0]),
                             .experts_per_token = static_cast<uint32_t>(experts_per_token),
                             .bias_offset = static_cast<uint32_t>(routes.shape.elements()),
                             .first_row = static_cast<uint32_t>(first),
                             .bound_rows = static_cast<uint32_t>(rows)});
    node.constants = constants;
    node.groups = {groups_for(builder, groups), 1, 1};
    // The estimate assumes that routes are spread evenly over the parts.
    node.work = {.bytes = bytes * rows / all_rows, .flops = flops * rows / all_rows};
    builder.add(std::move(node));
  }
  return y;
}

}  // namespace mulciber
