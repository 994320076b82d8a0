#include "ops/patches.h"

#include <fmt/format.h>

#include <algorithm>

#include "mulciber/error.h"
#include "ops/row_slices.h"
#include "runtime/op.h"
#include "shaders/patches.h"

namespace mulciber {
namespace {

void check_pixels(const ProgramBuilder& builder, const Tensor& pixels,
                  const PatchOptions& options) {
  const auto refuse = [&](std::string problem, const char* remedy) {
    throw ShapeError(builder.path() + ": unfold_patches", std::move(problem), remedy);
  };
  if (options.channels < 1 || options.channels > 4 || options.size == 0)
    refuse(fmt::format("{} channels, patches of {} pixels", options.channels, options.size),
           "give 1 to 4 channels and a patch of a pixel or more");
  const bool bytes = pixels.type == DataType::kU32 && pixels.shape.rank() == 3;
  const bool planes = pixels.type == DataType::kF32 && pixels.shape.rank() == 4 &&
                      pixels.shape[1] == options.channels;
  if (pixels.shape.elements() == 0 || (!bytes && !planes))
    refuse(fmt::format("pixels are {} {}", name_of(pixels.type), pixels.shape.to_string()),
           "give (images, channels, height, width) f32, or (images, height, width) u32");
  const int last = static_cast<int>(pixels.shape.rank()) - 1;
  if (pixels.shape[last] % options.size != 0 || pixels.shape[last - 1] % options.size != 0)
    refuse(fmt::format("{} by {} pixels are not whole patches of {}", pixels.shape[last],
                       pixels.shape[last - 1], options.size),
           "cut or resize the image before");
  if (options.result != DataType::kF32 && options.result != DataType::kF16)
    refuse(fmt::format("the result cannot be {}", name_of(options.result)), "ask for f32 or f16");
}

}  // namespace

Tensor unfold_patches(ProgramBuilder& builder, const Tensor& pixels, const PatchOptions& options) {
  check_pixels(builder, pixels, options);
  const int last = static_cast<int>(pixels.shape.rank()) - 1;
  const uint64_t width = pixels.shape[last], height = pixels.shape[last - 1];
  const uint64_t rows = options.zero_rows + width / options.size * (height / options.size);
  const Tensor y = builder.activation(
      {pixels.shape[0], rows, uint64_t{options.channels} * options.size * options.size},
      options.result);
  if (std::max(pixels.bytes(), y.bytes()) > builder.capabilities().max_storage_range)
    throw ShapeError(builder.path() + ": unfold_patches",
                     fmt::format("{} bytes of pixels and {} of patches pass what one descriptor "
                                 "covers",
                                 pixels.bytes(), y.bytes()),
                     "take fewer images at a time");
  const Kernel& kernel =
      builder.select({Op::kUnfoldPatches, {options.result, options.result}, kAnyShape});
  const uint64_t elements = y.shape.elements();
  Node node;
  node.kernel = &kernel;
  // An odd number of halves ends inside a word, whose other half must not change.
  const bool whole = size_of(y.type) * elements % 4 == 0;
  node.buffers = {{pixels, Access::kRead}, {y, whole ? Access::kWrite : Access::kReadWrite}};
  node.set_params(shader::UnfoldPatchesParams{
      static_cast<uint32_t>(elements), static_cast<uint32_t>(rows), options.zero_rows,
      static_cast<uint32_t>(width), static_cast<uint32_t>(height), options.scale[0],
      options.scale[1], options.scale[2], options.scale[3], options.shift[0], options.shift[1],
      options.shift[2], options.shift[3]});
  node.constants = {{PATCHES_SIZE, options.size},
                    {PATCHES_CHANNELS, options.channels},
                    {PATCHES_BYTES, pixels.type == DataType::kU32 ? 1u : 0u}};
  const uint64_t per_group =
      local_size(kernel, builder.capabilities()) * uint64_t{4 / size_of(y.type)};
  node.groups = {groups_for(builder, (elements + per_group - 1) / per_group), 1, 1};
  node.work.bytes = pixels.bytes() + y.bytes();
  node.work.flops = 2 * elements;
  builder.add(std::move(node));
  return y;
}

}  // namespace mulciber
