#include "ops/copy.h"

#include <algorithm>

#include <fmt/format.h>

#include "mulciber/error.h"
#include "runtime/op.h"
#include "shaders/copy.h"

namespace mulciber {

void copy_columns(ProgramBuilder& builder, const Tensor& x, const Tensor& into,
                  const CopyOptions& options) {
  const auto refuse = [&](std::string problem, const char* remedy) {
    throw ShapeError(builder.path() + ": copy", std::move(problem), remedy);
  };
  const uint64_t x_columns = x.shape.columns(), y_columns = into.shape.columns(),
                 rows = into.shape.rows();
  const uint64_t columns = options.columns != 0
                               ? options.columns
                               : x_columns - std::min<uint64_t>(options.first_column, x_columns);
  if (size_of(x.type) != size_of(into.type) || (x.shape.rows() != rows && x.shape.rows() != 1)) {
    refuse(fmt::format("{} {} into {} {}", name_of(x.type), x.shape.to_string(), name_of(into.type),
                       into.shape.to_string()),
           "elements must be of one size, and rows as many, or one");
  }
  const uint64_t blocks = options.blocks, further = blocks - 1;
  if (columns == 0 || blocks == 0 ||
      options.first_column + further * options.x_step + columns > x_columns ||
      options.into_column + further * options.into_step + columns > y_columns) {
    refuse(fmt::format("columns {} to {} of {} go to column {} of {}", options.first_column,
                       options.first_column + columns, x_columns, options.into_column, y_columns),
           "copy columns that are there");
  }
  const uint64_t per_word = 4 / size_of(x.type);
  for (uint64_t extent :
       {columns, x_columns, y_columns, uint64_t{options.first_column},
        uint64_t{options.into_column}, uint64_t{options.x_step}, uint64_t{options.into_step}}) {
    if (extent % per_word != 0)
      refuse(fmt::format("{} halves end inside a word", extent), "copy an even number");
  }
  const uint64_t count = rows * blocks * columns / per_word;
  if (std::max(x.bytes(), into.bytes()) > builder.capabilities().max_storage_range ||
      count >> 32 != 0) {
    refuse(fmt::format("{} bytes into {} pass what one descriptor covers", x.bytes(), into.bytes()),
           "copy fewer rows at a time");
  }
  const Kernel& kernel =
      builder.select({Op::kCopyColumns, {DataType::kF32, DataType::kF32}, kAnyShape});
  const auto words = [&](uint64_t elements) { return static_cast<uint32_t>(elements / per_word); };
  Node node;
  node.kernel = &kernel;
  node.buffers = {{x, Access::kRead}, {into, Access::kReadWrite}};
  node.set_params(shader::CopyColumnsParams{
      static_cast<uint32_t>(count), words(columns), x.shape.rows() == 1 ? 0 : words(x_columns),
      words(options.first_column), words(y_columns), words(options.into_column), options.blocks,
      words(options.x_step), words(options.into_step)});
  const uint64_t invocations = local_size(kernel, builder.capabilities());
  const uint64_t groups = (count + invocations - 1) / invocations;
  const uint64_t wide = std::min<uint64_t>(groups, builder.capabilities().max_groups[0]);
  node.groups = {static_cast<uint32_t>(wide), static_cast<uint32_t>((groups + wide - 1) / wide), 1};
  node.work.bytes = 8 * count;
  builder.add(std::move(node));
}

Tensor concatenate_words(ProgramBuilder& builder, std::span<const Tensor> parts) {
  uint64_t words = 0;
  for (const Tensor& part : parts) words += part.bytes() / 4;
  const Tensor joined = builder.activation({1, words}, DataType::kU32);
  uint32_t at = 0;
  for (const Tensor& part : parts) {
    copy_columns(builder, part.reshaped({1, part.shape.elements()}), joined, {.into_column = at});
    at += static_cast<uint32_t>(part.shape.elements());
  }
  return joined;
}

}  // namespace mulciber
