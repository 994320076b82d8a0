#include "ops/texels.h"

#include <algorithm>

#include <fmt/format.h>

#include "mulciber/error.h"
#include "runtime/op.h"

namespace mulciber {

Tensor pack_texels(ProgramBuilder& builder, const Tensor& x, TexelFormat format) {
  const Capabilities& device = builder.capabilities();
  if (x.type != DataType::kF32 || x.bytes() > device.max_storage_range)
    throw ShapeError(
        builder.path() + ": pack texels",
        fmt::format("{} {} of {} bytes", name_of(x.type), x.shape.to_string(), x.bytes()),
        "pass f32 that one descriptor covers");
  const uint64_t count = x.shape.elements(), each = texels_of(format);
  const uint64_t words = (count + each - 1) / each;
  const Kernel& kernel =
      builder.select({Op::kPackTexels, {DataType::kF32, DataType::kF32}, kAnyShape});
  const Tensor y = builder.activation({words}, DataType::kU32);
  const uint64_t invocations = local_size(kernel, device);
  const uint64_t groups =
      std::clamp<uint64_t>((words + invocations - 1) / invocations, 1, device.max_groups[0]);
  Node node;
  node.kernel = &kernel;
  node.buffers = {{x, Access::kRead}, {y, Access::kWrite}};
  node.groups = {static_cast<uint32_t>(groups), 1, 1};
  node.set_params(shader::PackTexelsParams{static_cast<uint32_t>(count),
                                           static_cast<uint32_t>(words),
                                           static_cast<uint32_t>(groups * invocations)});
  node.constants = {{TEXELS_FORMAT, static_cast<uint32_t>(format)}};
  node.work.bytes = x.bytes() + 4 * words;
  node.work.flops = 2 * count;
  builder.add(std::move(node));
  return y;
}

}  // namespace mulciber
