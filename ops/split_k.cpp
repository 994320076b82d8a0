#include "ops/split_k.h"

#include <algorithm>

#include "runtime/op.h"
#include "shaders/matmul.h"

namespace mulciber {

namespace {

constexpr uint64_t kDepthStep = 64;  // whole tiles of all rows, and whole 16 bytes of all types
// A smaller depth does not pay for two dispatches and for partial sums that go through memory.
constexpr uint64_t kLeastDepth = 256;
constexpr uint64_t kMostParts = 16;

}  // namespace

uint64_t split_depth(const Capabilities& device, const Kernel& kernel, uint64_t tiles,
                     uint64_t depth, std::optional<uint32_t> parts) {
  if (std::ranges::count(kernel.reflection.specialization_ids, MATMUL_SPLIT_DEPTH) == 0)
    return depth;
  uint64_t wanted = 1;
  if (parts) {
    wanted = *parts;
  } else if (device.has(kGpu) && tiles * 2 <= device.units()) {
    wanted = std::min({device.units() / tiles, depth / kLeastDepth, kMostParts});
  }
  if (wanted <= 1) return depth;
  const uint64_t step = (depth + wanted - 1) / wanted;
  return std::min(depth, (step + kDepthStep - 1) / kDepthStep * kDepthStep);
}

void split_k_reduce(ProgramBuilder& builder, const Tensor& partials, const Tensor& target,
                    const MatmulOptions& options, uint32_t first_column, uint32_t first_bias) {
  const uint64_t rows = partials.shape[1], columns = partials.shape[2];
  const Kernel& kernel =
      builder.select({Op::kSplitKReduce, {partials.type, target.type}, kAnyShape});
  Node node;
  node.kernel = &kernel;
  // Every binding needs a buffer; without a bias nothing reads this one.
  node.buffers = {{partials, Access::kRead},
                  {options.bias ? *options.bias : partials, Access::kRead},
                  {target, options.accumulate_into ? Access::kReadWrite : Access::kWrite}};
  node.constants = {{MATMUL_ACTIVATION, static_cast<uint32_t>(options.activation)},
                    {MATMUL_BIAS, options.bias ? 1u : 0u},
                    {MATMUL_ACCUMULATE, options.accumulate_into ? 1u : 0u},
                    {MATMUL_GATED, options.gated ? 1u : 0u}};
  node.set_params(shader::SplitKReduceParams{
      static_cast<uint32_t>(rows), static_cast<uint32_t>(columns),
      static_cast<uint32_t>(partials.shape[0]), static_cast<uint32_t>(target.shape.columns()),
      first_column, first_bias});
  const uint64_t pairs = (columns + 1) / 2 * rows;
  const uint64_t invocations = local_size(kernel, builder.capabilities());
  node.groups = {static_cast<uint32_t>((pairs + invocations - 1) / invocations), 1, 1};
  const uint64_t results = rows * (options.gated ? columns / 2 : columns);
  node.work.bytes = partials.bytes() +
                    results * size_of(target.type) * (options.accumulate_into ? 2 : 1) +
                    (options.bias ? columns * 4 : 0);
  node.work.flops = partials.shape.elements();
  builder.add(std::move(node));
}

}  // namespace mulciber
