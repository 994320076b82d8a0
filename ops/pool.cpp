#include "ops/pool.h"

#include <fmt/format.h>

#include <algorithm>

#include "mulciber/error.h"
#include "ops/row_slices.h"
#include "runtime/op.h"
#include "shaders/pool.h"

namespace mulciber {

static_assert(static_cast<uint32_t>(PoolMode::kMean) == POOL_MEAN &&
              static_cast<uint32_t>(PoolMode::kMeanSqrtLength) == POOL_ROOT &&
              static_cast<uint32_t>(PoolMode::kWeightedMean) == POOL_WEIGHTED &&
              static_cast<uint32_t>(PoolMode::kMax) == POOL_MAX &&
              static_cast<uint32_t>(PoolMode::kLast) == POOL_LAST);

Tensor pool(ProgramBuilder& builder, const Tensor& x, const Tensor& control,
            const ControlArray<uint32_t>& counts, PoolMode mode) {
  const auto refuse = [&](std::string problem, const char* remedy) {
    throw ShapeError(builder.path() + ": pool", std::move(problem), remedy);
  };
  if (x.type != DataType::kF32 || x.shape.rank() != 3 || x.shape.elements() == 0)
    refuse(fmt::format("x is {} {}", name_of(x.type), x.shape.to_string()),
           "give (rows, length, columns) f32");
  const uint64_t rows = x.shape[0], columns = x.shape[2];
  if (!fits(counts, rows, control))
    refuse(fmt::format("{} counts for {} rows", counts.count, rows),
           "give one for each, within control");
  const Tensor y = builder.activation({rows, columns});
  if (std::max(x.bytes(), control.bytes()) > builder.capabilities().max_storage_range)
    refuse(fmt::format("{} bytes of states pass what one descriptor covers", x.bytes()),
           "pool fewer rows at a time");
  Node node;
  node.kernel = &builder.select({Op::kPool, {}, kAnyShape});
  node.buffers = {{x, Access::kRead}, {control, Access::kRead}, {y, Access::kWrite}};
  node.set_params(shader::PoolParams{static_cast<uint32_t>(rows * columns),
                                     static_cast<uint32_t>(x.shape[1]),
                                     static_cast<uint32_t>(columns), counts.word});
  node.constants = {{POOL_MODE, static_cast<uint32_t>(mode)}};
  const uint64_t per_group = local_size(*node.kernel, builder.capabilities());
  node.groups = {groups_for(builder, (rows * columns + per_group - 1) / per_group), 1, 1};
  node.work.bytes = (mode == PoolMode::kLast ? 1 : x.shape[1]) * y.bytes() + y.bytes();
  node.work.flops = mode == PoolMode::kLast ? 0 : x.shape.elements();
  builder.add(std::move(node));
  return y;
}

}  // namespace mulciber
