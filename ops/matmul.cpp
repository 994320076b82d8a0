#include "ops/matmul.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "base/blocks.h"
#include "mulciber/error.h"
#include "ops/matmul_tile.h"
#include "ops/row_slices.h"
#include "ops/split_k.h"
#include "runtime/op.h"
#include "shaders/matmul.h"
#include "shaders/matmul_lanes.h"

namespace mulciber {
namespace {

/// Type of a product's result: f32 for x in blocks.
DataType result_type(const Tensor& x) {
  return x.type == DataType::kQ8_1 ? DataType::kF32 : x.type;
}

Shape with_columns(const Shape& shape, uint64_t columns) {
  uint64_t extents[Shape::kMaxRank];
  for (size_t i = 0; i < shape.rank(); ++i) extents[i] = shape[static_cast<int>(i)];
  extents[shape.rank() - 1] = columns;
  return Shape(std::span<const uint64_t>(extents, shape.rank()));
}

void check(const ProgramBuilder& builder, const Tensor& x, const Tensor& weight,
           const MatmulOptions& options, const Tensor& target) {
  auto refuse = [&](std::string problem, std::string remedy) {
    throw ShapeError(builder.path() + ": matmul", std::move(problem), std::move(remedy));
  };
  uint64_t columns = weight.shape[0], results = options.gated ? columns / 2 : columns;
  if (options.gated && columns % 2 != 0) {
    refuse(fmt::format("{} rows of the weight cannot be gates and what they gate", columns),
           "a gated product needs an even number of them, interleaved");
  }
  const auto bias_fits = [&](uint64_t biases) {
    return options.first_bias ? *options.first_bias + columns <= biases : columns == biases;
  };
  if (options.bias &&
      (options.bias->type != DataType::kF32 || !bias_fits(options.bias->shape.elements()))) {
    refuse(fmt::format("the bias is {} {}, the weight has {} rows", name_of(options.bias->type),
                       options.bias->shape.to_string(), columns),
           "the bias must be f32 with one value per row of the weight");
  }
  if (options.norm && (x.shape.rows() != 1 || x.type != DataType::kF32 || options.bias ||
                       options.norm->gain.type != DataType::kF32 ||
                       options.norm->gain.shape != Shape{x.shape.columns()})) {
    refuse(
        fmt::format("x {} {} cannot be normalized with {} gains{}", name_of(x.type),
                    x.shape.to_string(), options.norm->gain.shape.to_string(),
                    options.bias ? " before a product with a bias" : ""),
        "x must be one row of f32 with a gain for each column; normalize it in a dispatch of its "
        "own");
  }
  if (target.shape.rows() != x.shape.rows() ||
      options.first_column + results > target.shape.columns() || target.type != result_type(x)) {
    refuse(fmt::format("{} columns from column {} do not fit {} {}, x being {} {}", results,
                       options.first_column, name_of(target.type), target.shape.to_string(),
                       name_of(x.type), x.shape.to_string()),
           "the target must be of x's type (f32 for q8_1) and rows, and wide enough");
  }
}

shader::MatmulParams params_of(uint64_t rows, uint64_t columns, const Tensor& weight,
                               const Tensor& target) {
  shader::MatmulParams params{};
  params.rows = static_cast<uint32_t>(rows);
  params.columns = static_cast<uint32_t>(columns);
  params.depth = static_cast<uint32_t>(weight.shape.columns());
  params.row_stride = static_cast<uint32_t>(target.shape.columns());
  return params;
}

Op op_of(const MatmulOptions& options) { return options.norm ? Op::kNormMatmul : Op::kMatmul; }

/// The problem given to selection. A product that normalizes has one row, which is not an extent.
Problem problem_of(const MatmulOptions& options, KernelTypes types, uint64_t rows, uint64_t columns,
                   uint64_t depth) {
  Problem problem{op_of(options), types, matmul_facts(rows, columns, depth)};
  if (!options.norm) problem.extents.push_back(rows);
  problem.extents.insert(problem.extents.end(), {columns, depth});
  return problem;
}

/// The tensor for the third binding. Every binding needs a buffer; without gains and bias nothing
/// reads it.
Tensor third_operand(const MatmulOptions& options, const Tensor& weight) {
  return options.norm ? options.norm->gain : options.bias ? *options.bias : weight;
}

std::vector<SpecializationConstant> constants_of(const MatmulOptions& options,
                                                 const Tensor& weight) {
  std::vector<SpecializationConstant> constants = {
      {MATMUL_ACTIVATION, static_cast<uint32_t>(options.activation)},
      {MATMUL_BIAS, options.bias ? 1u : 0u},
      {MATMUL_ACCUMULATE, options.accumulate_into ? 1u : 0u},
      {MATMUL_GATED, options.gated ? 1u : 0u}};
  if (const uint32_t format = block_format(weight.type); format != 0)
    constants.push_back({WEIGHT_FORMAT, format});
  if (options.norm)
    constants.push_back({MATMUL_EPSILON, std::bit_cast<uint32_t>(options.norm->epsilon)});
  return constants;
}

/// The weight and its further segments as one range of words of one buffer. None where they do not
/// follow each other there, have more than three types, or exceed what a device can bind.
std::optional<Tensor> one_run(const ProgramBuilder& builder, const Tensor& weight,
                              std::span<const Tensor> more_segments) {
  if (more_segments.size() > 2) return std::nullopt;
  Tensor run = weight;
  for (const Tensor& segment : more_segments) {
    if (!is_block_type(weight.type) || !is_block_type(segment.type) || run.shape[0] % 2 != 0 ||
        segment.shape[0] % 2 != 0 || weight.arena_id >= 0 || segment.arena_id >= 0 ||
        weight.byte_offset != 0 || segment.byte_offset != 0 ||
        segment.view.buffer != weight.view.buffer ||
        segment.view.offset < run.view.offset + run.bytes() ||
        (segment.view.offset - weight.view.offset) % 16 != 0) {
      return std::nullopt;
    }
    run = segment;
  }
  const uint64_t bytes = run.view.offset + run.bytes() - weight.view.offset;
  if (bytes > builder.capabilities().max_storage_range) return std::nullopt;
  run = {.shape = {bytes / 4}, .type = DataType::kU32, .view = weight.view};
  run.view.size = bytes;
  return run;
}

/// Multiplies one row of x by a weight of several block types in one node; false: no kernel can.
bool add_grouped(ProgramBuilder& builder, const Tensor& x, const Tensor& weight,
                 const MatmulOptions& options, const Tensor& target) {
  const std::optional<Tensor> run = one_run(builder, weight, options.more_segments);
  if (!run || builder.rows_as(x.shape.rows()) != 1 || options.gated) return false;
  uint64_t columns = weight.shape[0];
  for (const Tensor& segment : options.more_segments) columns += segment.shape[0];
  if (options.bias && (options.bias->type != DataType::kF32 ||
                       options.first_bias.value_or(0) + columns > options.bias->shape.elements())) {
    return false;
  }
  const Kernel& kernel = builder.select(
      {op_of(options), {x.type, weight.type}, matmul_facts(1, columns, x.shape.columns())});
  const MatmulTile tile(kernel, builder.capabilities(), 1);
  const bool served = std::ranges::all_of(options.more_segments, [&](const Tensor& segment) {
    return serves(kernel.types, {x.type, segment.type});
  });
  if (!served || tile.block_types <= options.more_segments.size()) return false;
  Node node;
  node.kernel = &kernel;
  node.buffers = {{x, Access::kRead},
                  {*run, Access::kRead},
                  {third_operand(options, *run), Access::kRead},
                  {target, options.accumulate_into ? Access::kReadWrite : Access::kWrite}};
  node.constants = constants_of(options, weight);
  if (tile.open_height) node.constants.push_back({MATMUL_ROWS, 1});
  shader::MatmulParams params = params_of(1, columns, weight, target);
  params.first_column = options.first_column;
  params.first_bias = options.first_bias.value_or(0);
  uint64_t begin = weight.shape[0], groups = (begin + tile.columns - 1) / tile.columns;
  for (size_t i = 0; i < options.more_segments.size(); ++i) {
    const Tensor& segment = options.more_segments[i];
    (i == 0 ? params.second_column : params.third_column) = static_cast<uint32_t>(begin);
    (i == 0 ? params.second_at : params.third_at) =
        static_cast<uint32_t>((segment.view.offset - weight.view.offset) / 4);
    node.constants.push_back(
        {static_cast<uint32_t>(i == 0 ? MATMUL_SECOND_FORMAT : MATMUL_THIRD_FORMAT),
         block_format(segment.type)});
    begin += segment.shape[0];
    groups += (segment.shape[0] + tile.columns - 1) / tile.columns;
  }
  node.set_params(params);
  node.groups = {static_cast<uint32_t>(groups), 1, 1};
  node.work.bytes = x.bytes() + run->bytes() +
                    columns * size_of(target.type) * (options.accumulate_into ? 2 : 1) +
                    (options.bias ? columns * 4 : 0);
  node.work.flops = 2 * columns * x.shape.columns();
  builder.add(std::move(node));
  return true;
}

/// A product with a weight of several types: in one node, or one per segment.
Tensor matmul_of_segments(ProgramBuilder& builder, const Tensor& x, const Tensor& weight,
                          MatmulOptions options) {
  if (options.gated)
    throw ShapeError(builder.path() + ": matmul",
                     "gates and what they gate must be stored in one type", "");
  uint64_t columns = weight.shape[0];
  for (const Tensor& segment : options.more_segments) {
    columns += segment.shape[0];
    if (segment.shape.rank() != 2 || segment.shape.columns() != weight.shape.columns())
      throw ShapeError(builder.path() + ": matmul",
                       fmt::format("a segment of the weight is {}, the first one {}",
                                   segment.shape.to_string(), weight.shape.to_string()),
                       "all must be of one length");
  }
  if (!options.accumulate_into && !options.into)
    options.into = builder.activation(with_columns(x.shape, columns), result_type(x));
  const Tensor target = options.accumulate_into ? *options.accumulate_into : *options.into;
  options.padded = false;
  const std::vector<Tensor> more_segments = std::move(options.more_segments);
  options.more_segments = more_segments;
  if (target.shape.rows() == x.shape.rows() &&
      options.first_column + columns <= target.shape.columns() && target.type == result_type(x) &&
      add_grouped(builder, x, weight, options, target)) {
    return target;
  }
  options.more_segments.clear();
  if (options.bias && !options.first_bias) options.first_bias = 0;
  matmul(builder, x, weight, options);
  uint32_t before = static_cast<uint32_t>(weight.shape[0]);
  for (const Tensor& segment : more_segments) {
    options.first_column += before;
    if (options.first_bias) *options.first_bias += before;
    matmul(builder, x, segment, options);
    before = static_cast<uint32_t>(segment.shape[0]);
  }
  return target;
}

}  // namespace

Tensor matmul(ProgramBuilder& builder, const Tensor& x, const Tensor& weight,
              const MatmulOptions& options) {
  if (weight.shape.rank() != 2 || x.shape.rank() == 0 ||
      weight.shape.columns() != x.shape.columns()) {
    throw ShapeError(builder.path() + ": matmul",
                     fmt::format("x {} does not fit the weight {}", x.shape.to_string(),
                                 weight.shape.to_string()),
                     "the last extents must agree, and the weight must be (outputs, inputs)");
  }
  const bool blocks = x.type == DataType::kQ8_1 && multiplies_integers(weight.type);
  if (!blocks &&
      ((x.type != DataType::kF32 && x.type != DataType::kF16) || weight.type == DataType::kU32)) {
    throw ShapeError(
        builder.path() + ": matmul",
        fmt::format("{} cannot be multiplied with {}", name_of(x.type), name_of(weight.type)),
        "x must be f32 or f16, the weight any type of numbers but u32; or q8_1 and blocks of "
        "integers");
  }
  if (!options.more_segments.empty()) return matmul_of_segments(builder, x, weight, options);
  uint64_t rows = x.shape.rows(), columns = weight.shape[0], depth = x.shape.columns();
  const uint64_t per_result = options.gated ? 2 : 1;  // rows of the weight for one result
  const uint64_t results = columns / per_result;
  Tensor target = options.accumulate_into ? *options.accumulate_into
                  : options.into
                      ? *options.into
                      : builder.activation(
                            with_columns(x.shape, options.padded ? (results + 3) / 4 * 4 : results),
                            result_type(x));
  check(builder, x, weight, options, target);

  const Kernel& kernel = builder.select(
      problem_of(options, {x.type, weight.type}, builder.rows_as(rows), columns, depth));
  const Capabilities& device = builder.capabilities();
  // Kernels sum a single row in another order when weights are blocks; so a single row of a larger
  // batch is computed as one of two.
  const bool shares_order = is_block_type(weight.type) && builder.rows_as(rows) > 1;
  const MatmulTile tile(kernel, device, shares_order ? std::max<uint64_t>(rows, 2) : rows),
      tile_of_all(kernel, device, builder.rows_as(rows));
  uint64_t row_step = std::min(rows_per_node(builder, x), rows_per_node(builder, target));
  uint64_t column_step = rows_per_node(builder, weight);
  // A slice must keep a gate and its value together. Where the step is odd, every row is aligned by
  // itself, so an even step is aligned too.
  if (options.gated && column_step < columns && column_step % 2 != 0) {
    column_step = column_step > 1 ? column_step - 1
                                  : builder.rows_per_binding(2 * row_bytes(weight.type, depth)) * 2;
  }

  for (uint64_t row = 0; row < rows; row += row_step) {
    uint64_t node_rows = std::min(row_step, rows - row);
    Tensor node_x = x.row_slice(row, node_rows);
    Tensor node_y = target.row_slice(row, node_rows);
    for (uint64_t column = 0; column < columns; column += column_step) {
      uint64_t node_columns = std::min(column_step, columns - column);
      Tensor node_weight = weight.row_slice(column, node_columns);
      Node node;
      node.kernel = &kernel;
      node.buffers = {{node_x, Access::kRead},
                      {node_weight, Access::kRead},
                      {third_operand(options, node_weight), Access::kRead},
                      {node_y, options.accumulate_into ? Access::kReadWrite : Access::kWrite}};
      shader::MatmulParams params = params_of(node_rows, node_columns, weight, target);
      params.first_column = static_cast<uint32_t>(options.first_column + column / per_result);
      params.first_bias = static_cast<uint32_t>(options.first_bias.value_or(0) + column);
      node.set_params(params);
      node.groups = {static_cast<uint32_t>((node_columns + tile.columns - 1) / tile.columns),
                     static_cast<uint32_t>((node_rows + tile.rows - 1) / tile.rows), 1};
      const uint64_t row_tiles =
          (builder.rows_as(node_rows) + tile_of_all.rows - 1) / tile_of_all.rows;
      const uint64_t part_depth =
          split_depth(device, kernel, node.groups[0] * row_tiles, depth, options.depth_parts);
      std::optional<Tensor> partials;
      const uint64_t parts = (depth + part_depth - 1) / part_depth;
      const uint64_t partial_bytes = parts * node_rows * node_columns * sizeof(float);
      if (parts > 1 && partial_bytes <= device.max_storage_range) {
        partials = builder.activation({parts, node_rows, node_columns}, DataType::kF32);
        // The epilogue follows when the sums are complete.
        node.constants = constants_of({}, weight);
        node.constants.push_back({MATMUL_SPLIT_DEPTH, static_cast<uint32_t>(part_depth)});
        node.buffers[2] = {node_weight, Access::kRead};
        node.buffers[3] = {*partials, Access::kWrite};
        node.groups[2] = static_cast<uint32_t>(parts);
      } else {
        node.constants = constants_of(options, weight);
      }
      if (tile.open_height)
        node.constants.push_back({MATMUL_ROWS, static_cast<uint32_t>(tile.rows)});
      if (const auto whole = tile.whole(kernel, node_rows, node_columns, depth))
        node.constants.push_back({MATMUL_WHOLE, *whole});
      const bool padded = options.padded && column + node_columns == columns;
      if (const auto quads =
              tile.store_quads(kernel, target, params.first_column, node_columns, padded))
        node.constants.push_back({MATMUL_STORE_QUADS, options.gated ? 0 : *quads});
      uint64_t sums = node_rows * node_columns;
      node.work.bytes =
          node_x.bytes() + node_weight.bytes() +
          (partials ? partials->bytes()
                    : sums / per_result * size_of(target.type) * (options.accumulate_into ? 2 : 1) +
                          (options.bias ? node_columns * 4 : 0));
      node.work.flops = 2 * sums * depth;
      builder.add(std::move(node));
      if (partials)
        split_k_reduce(builder, *partials, node_y, options, params.first_column, params.first_bias);
    }
  }
  return target;
}

bool norms_fold(const Capabilities& device) { return device.has(kGpu | kSubgroupArithmetic); }

}  // namespace mulciber
