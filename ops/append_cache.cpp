#include "ops/append_cache.h"

#include <fmt/format.h>

#include "base/blocks.h"
#include "mulciber/error.h"
#include "ops/attention_problem.h"
#include "ops/row_slices.h"
#include "runtime/op.h"
#include "shaders/attention.h"
#include "shaders/cache_pages.h"

namespace mulciber {

void append_cache(ProgramBuilder& builder, const Tensor& x, const Tensor& cache,
                  const AppendCacheOptions& options) {
  const auto refuse = [&](std::string problem, std::string remedy) {
    throw ShapeError(builder.path(), std::move(problem), std::move(remedy));
  };
  if (x.shape.rank() != 3 || cache.shape.rank() != 3 ||
      (!options.pages && x.shape[0] != cache.shape[0])) {
    refuse(fmt::format("x has shape {} and the cache {}", x.shape.to_string(),
                       cache.shape.to_string()),
           "they must be (rows, length, columns) and (rows, context, columns), or pages of it");
  }
  if (options.first_column + cache.shape.columns() > x.shape.columns()) {
    refuse(fmt::format("{} columns of the cache from column {} pass the {} columns of x",
                       cache.shape.columns(), options.first_column, x.shape.columns()),
           "make x wider or the cache narrower");
  }
  if (!fits(options.positions, 1, options.control) || !serves_rows(options.positions, x.shape[0])) {
    refuse(fmt::format("{} positions for {} rows stand at word {} of a {} tensor of {}",
                       options.positions.count, x.shape[0], options.positions.word,
                       name_of(options.control.type), options.control.shape.elements()),
           "give one, or one for each row, in a u32 tensor that holds them");
  }
  const bool in_fours =
      cache.shape.columns() % 4 == 0 && x.shape.columns() % 4 == 0 && options.first_column % 4 == 0;
  const Kernel& kernel = builder.select(
      {Op::kAppendCache, {x.type, cache.type}, in_fours ? kColumnsMultipleOf4 : kAnyShape});

  const uint64_t rows = x.shape[0], q_len = x.shape[1], columns = cache.shape.columns();
  const uint64_t context = cache_length(builder, cache, rows, options.control, options.pages);
  const uint64_t x_bytes = q_len * x.shape.columns() * size_of(x.type);
  const uint64_t cache_row_bytes = row_bytes(cache.type, columns),
                 cache_bytes = options.pages ? 0 : context * cache_row_bytes;
  const uint64_t count = rows_per_node(builder, kernel, rows, {x_bytes, cache_bytes});
  const uint32_t stride = stride_of(options.positions);
  const uint32_t row_pages = options.pages ? options.pages->count / static_cast<uint32_t>(rows) : 0;
  // Each invocation writes four columns, a block, or a word. A row with an odd number of halves may
  // begin and end inside a word.
  uint64_t words = cache.type == DataType::kF16 ? columns / 2 + 1 : columns;
  if (kernel.shape & kColumnsMultipleOf4) words = columns / 4;
  if (is_block_type(cache.type)) words = columns / block_elements(cache.type);
  const uint64_t invocations = local_size(kernel, builder.capabilities());
  for (uint64_t first = 0; first < rows; first += count) {
    const uint64_t these = std::min(count, rows - first);
    Node node;
    node.kernel = &kernel;
    node.buffers = {{slice_rows(x, first, these), Access::kRead},
                    {options.pages ? cache : slice_rows(cache, first, these), Access::kReadWrite},
                    {options.control, Access::kRead}};
    node.set_params(shader::AppendCacheParams{
        static_cast<uint32_t>(q_len), static_cast<uint32_t>(context),
        static_cast<uint32_t>(columns), static_cast<uint32_t>(x.shape.columns()),
        options.first_column, options.positions.word + static_cast<uint32_t>(first) * stride,
        stride,
        options.pages ? options.pages->word + static_cast<uint32_t>(first) * row_pages : 0});
    if (options.pages)
      node.constants = {{CONSTANT_CACHE_PAGE, static_cast<uint32_t>(cache.shape[1])}};
    node.groups = {static_cast<uint32_t>((words + invocations - 1) / invocations),
                   static_cast<uint32_t>(q_len), static_cast<uint32_t>(these)};
    node.work.bytes = these * q_len * (columns * size_of(x.type) + cache_row_bytes);
    builder.add(std::move(node));
  }
}

}  // namespace mulciber
