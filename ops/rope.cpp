#include "ops/rope.h"

#include <fmt/format.h>

#include "mulciber/error.h"
#include "ops/append_cache.h"
#include "ops/attention_problem.h"
#include "ops/row_slices.h"
#include "runtime/op.h"
#include "shaders/cache_pages.h"
#include "shaders/rope.h"

namespace mulciber {
namespace {

constexpr uint32_t kBuffersWithCache = 5;

uint32_t value_size_of(const RopeOptions& options) {
  if (!options.values) return 0;
  return options.value_size > 0 ? options.value_size : options.head_size;
}

bool odd_pairs(const RopeOptions& options) { return options.rotary_size % 4 != 0; }

void check(const ProgramBuilder& builder, const Tensor& qkv, const Tensor& cache,
           const RopeOptions& options) {
  const auto refuse = [&](std::string problem, std::string remedy) {
    throw ShapeError(builder.path() + ": rope", std::move(problem), std::move(remedy));
  };
  const uint64_t value_size = value_size_of(options);
  const uint64_t in_cache = options.kv_heads * (options.head_size + value_size);
  const uint64_t columns = uint64_t{options.heads} * options.head_size + in_cache;
  if (options.heads == 0 || options.kv_heads == 0 || options.head_size == 0 ||
      options.head_size % 2 != 0 || value_size % 2 != 0 || options.rotary_size % 2 != 0 ||
      options.rotary_size == 0 || options.rotary_size > options.head_size ||
      (odd_pairs(options) && options.rotary_size > ROPE_MOST_ODD)) {
    refuse(fmt::format("{} and {} heads of {}, of which {} rotate", options.heads, options.kv_heads,
                       options.head_size, options.rotary_size),
           fmt::format("the head size must be even, and an even part of it must rotate, a multiple "
                       "of 4 above {}",
                       ROPE_MOST_ODD));
  }
  if (qkv.shape.rank() != 3 || qkv.shape.elements() == 0 || qkv.shape.columns() != columns) {
    refuse(fmt::format("queries, keys and values are {}", qkv.shape.to_string()),
           fmt::format("they must be (rows, length, {})", columns));
  }
  if (cache.shape.rank() != 3 || (!options.pages && cache.shape[0] != qkv.shape[0]) ||
      cache.shape[1] == 0 || cache.shape.columns() != in_cache) {
    refuse(fmt::format("the cache is {}", cache.shape.to_string()),
           options.pages ? fmt::format("it must be (pages, positions of a page, {})", in_cache)
                         : fmt::format("it must be ({}, context, {})", qkv.shape[0], in_cache));
  }
  if (is_block_type(cache.type) && (options.head_size % block_elements(cache.type) != 0 ||
                                    options.head_size > ROPE_MOST_STAGED ||
                                    (options.values && value_size != options.head_size))) {
    refuse(fmt::format("the cache is in {}, and heads have {}", name_of(cache.type),
                       options.head_size),
           fmt::format("heads must be of one size, whole blocks of {}, up to {}",
                       block_elements(cache.type), ROPE_MOST_STAGED));
  }
  const Tensor& angles = options.angles;
  if (angles.type != DataType::kF32 || angles.shape.rank() != 2 || angles.shape.elements() == 0 ||
      angles.shape.columns() != options.rotary_size) {
    refuse(fmt::format("the angles are {} {}", name_of(angles.type), angles.shape.to_string()),
           fmt::format("they must be f32 (positions, {})", options.rotary_size));
  }
  if (options.gains && (options.gains->type != DataType::kF32 ||
                        options.gains->shape != Shape{2, options.head_size})) {
    refuse(fmt::format("the gains are {} {}", name_of(options.gains->type),
                       options.gains->shape.to_string()),
           fmt::format("they must be f32 (2, {}), queries first", options.head_size));
  }
  if (!fits(options.positions, 1, options.control) ||
      !serves_rows(options.positions, qkv.shape[0])) {
    refuse(fmt::format("{} positions for {} rows stand at word {} of a {} tensor of {}",
                       options.positions.count, qkv.shape[0], options.positions.word,
                       name_of(options.control.type), options.control.shape.elements()),
           "give one, or one for each row, in a u32 tensor that holds them");
  }
}

}  // namespace

HeadColumns rope_append(ProgramBuilder& builder, const Tensor& qkv, const Tensor& cache,
                        const RopeOptions& options) {
  check(builder, qkv, cache, options);
  const Kernel& kernel = builder.select({Op::kRopeAppend, {qkv.type, cache.type}, kAnyShape});
  const bool writes_cache = kernel.reflection.buffer_count == kBuffersWithCache;
  const uint64_t rows = qkv.shape[0], length = qkv.shape[1],
                 context = cache_length(builder, cache, rows, options.control, options.pages);
  const uint64_t row_elements = length * qkv.shape.columns();
  const uint64_t step = rows_per_node(
      builder, kernel, rows, {qkv.bytes() / rows, options.pages ? 0 : cache.bytes() / rows});
  const uint32_t row_pages = options.pages ? options.pages->count / static_cast<uint32_t>(rows) : 0;
  const uint32_t stride = stride_of(options.positions);
  for (uint64_t row = 0; row < rows; row += step) {
    const uint64_t count = std::min(step, rows - row);
    const Tensor part = slice_rows(qkv, row, count);
    Node node;
    node.kernel = &kernel;
    // Every binding needs a buffer; without gains nothing reads the fourth one.
    node.buffers = {{part, Access::kReadWrite},
                    {options.control, Access::kRead},
                    {options.angles, Access::kRead},
                    {options.gains ? *options.gains : options.angles, Access::kRead}};
    if (writes_cache)
      node.buffers.push_back(
          {options.pages ? cache : slice_rows(cache, row, count), Access::kReadWrite});
    shader::RopeAppendParams params{};
    params.tokens = static_cast<uint32_t>(length);
    params.heads = options.heads;
    params.kv_heads = options.kv_heads;
    params.head_size = options.head_size;
    params.rotary_size = options.rotary_size;
    params.context = static_cast<uint32_t>(context);
    params.angle_rows = static_cast<uint32_t>(options.angles.shape[0]);
    params.positions = options.positions.word + static_cast<uint32_t>(row) * stride;
    params.position_stride = stride;
    params.epsilon = options.epsilon;
    params.value_size = value_size_of(options);
    if (options.pages) params.pages = options.pages->word + static_cast<uint32_t>(row) * row_pages;
    node.set_params(params);
    node.constants = {
        {ROPE_INTERLEAVED, options.interleaved ? 1u : 0u},
        {ROPE_GAINS, options.gains ? 1u : 0u},
        {ROPE_ODD_PAIRS, odd_pairs(options) ? 1u : 0u},
        {CONSTANT_CACHE_PAGE, options.pages ? static_cast<uint32_t>(cache.shape[1]) : 0u}};
    node.groups = {options.heads + (options.values ? 2 : 1) * options.kv_heads,
                   static_cast<uint32_t>(length), static_cast<uint32_t>(count)};
    // Counts all of qkv as input, queries as output, and the angles of the tokens.
    node.work.bytes =
        part.bytes() + count * length * options.heads * options.head_size * size_of(qkv.type) +
        (writes_cache ? count * length * row_bytes(cache.type, cache.shape.columns()) : 0) +
        length * (stride != 0 ? count : 1) * options.rotary_size * 4;
    node.work.flops = count * row_elements * (options.gains ? 6 : 3);
    builder.add(std::move(node));
  }
  if (!writes_cache) {
    append_cache(builder, qkv, cache,
                 {.first_column = options.heads * options.head_size,
                  .control = options.control,
                  .positions = options.positions,
                  .pages = options.pages});
  }
  return {qkv, 0};
}

}  // namespace mulciber
