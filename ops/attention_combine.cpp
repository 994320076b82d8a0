#include "ops/attention_combine.h"

#include <algorithm>

#include "runtime/kernel.h"
#include "runtime/op.h"
#include "shaders/attention.h"

namespace mulciber {

uint32_t key_parts(const Capabilities& device, const Kernel& kernel, uint64_t tiles, uint64_t keys,
                   std::optional<uint32_t> parts) {
  constexpr uint64_t kMostParts = 16;
  if (std::ranges::count(kernel.reflection.specialization_ids, CONSTANT_KEY_PARTS) == 0) return 1;
  if (parts) return *parts;
  if (!device.has(kGpu) || tiles * 2 > device.units()) return 1;
  const uint64_t wanted = std::min({device.units() / tiles, keys / MIN_KEYS_PER_SPLIT, kMostParts});
  return static_cast<uint32_t>(std::max<uint64_t>(wanted, 1));
}

void attention_combine(ProgramBuilder& builder, const Tensor& found, const Tensor& result) {
  const Kernel& kernel =
      builder.select({Op::kAttentionCombine, {found.type, result.type}, kAnyShape});
  const uint64_t lines = found.shape[0], parts = found.shape[1], quads = found.shape[2] / 4 - 1;
  Node node;
  node.kernel = &kernel;
  node.buffers = {{found, Access::kRead}, {result, Access::kWrite}};
  node.set_params(shader::AttentionCombineParams{
      static_cast<uint32_t>(lines), static_cast<uint32_t>(parts), static_cast<uint32_t>(quads)});
  const uint64_t invocations = local_size(kernel, builder.capabilities());
  node.groups = {static_cast<uint32_t>((lines * quads + invocations - 1) / invocations), 1, 1};
  node.work.bytes = found.bytes() + lines * quads * 4 * size_of(result.type);
  node.work.flops = 2 * found.shape.elements();
  builder.add(std::move(node));
}

}  // namespace mulciber
