#include "ops/norm.h"

#include <fmt/format.h>

#include "mulciber/error.h"
#include "ops/row_slices.h"
#include "runtime/op.h"
#include "shaders/norm.h"

namespace mulciber {
namespace {

ShapeFacts facts_of(const ProgramBuilder& builder, const Shape& shape) {
  ShapeFacts facts = builder.rows_as(shape.rows()) <= 8 ? kRowsAtMost8 : kRowsAbove8;
  if (shape.columns() % 4 == 0) facts |= kColumnsMultipleOf4;
  if (shape.columns() % 8 == 0) facts |= kColumnsMultipleOf8;
  if (shape.columns() % 16 == 0) facts |= kColumnsMultipleOf16;
  if (shape.columns() >= 256) facts |= kColumnsAtLeast256;
  if (shape.columns() <= 1024) facts |= kColumnsAtMost1024;
  return facts;
}

[[noreturn]] void refuse_norm(const ProgramBuilder& builder, const char* op, std::string problem,
                              std::string remedy) {
  throw ShapeError(builder.path() + ": " + op, std::move(problem), std::move(remedy));
}

void check_rows(const ProgramBuilder& builder, const char* op, const Tensor& x) {
  if (x.type == DataType::kU32 || x.shape.rank() == 0 || x.shape.columns() == 0) {
    refuse_norm(builder, op, fmt::format("x is {} {}", name_of(x.type), x.shape.to_string()),
                "pass f32 or f16 rows of at least one column");
  }
}

/// Type of a norm's result. Throws ShapeError where rows of x are not whole blocks of it.
DataType result_type(const ProgramBuilder& builder, const char* op, const Tensor& x,
                     std::optional<DataType> to) {
  const DataType type = to.value_or(x.type);
  if (x.shape.columns() % block_elements(type) != 0) {
    refuse_norm(
        builder, op,
        fmt::format("rows of {} are not whole blocks of {}", x.shape.columns(), name_of(type)),
        "keep such a result in f32 or f16");
  }
  return type;
}

Tensor root_mean_square(ProgramBuilder& builder, const Tensor& x, const Tensor* stream,
                        const Tensor& gains, float epsilon, std::optional<DataType> to) {
  const char* op = stream ? "add and rms norm" : "rms norm";
  check_rows(builder, op, x);
  const uint64_t columns = x.shape.columns(), rows = x.shape.rows();
  const bool normalized = stream && gains.shape == Shape{2, columns};
  if ((gains.shape != Shape{columns} && !normalized) || gains.type != DataType::kF32) {
    refuse_norm(
        builder, op,
        fmt::format("the gain is {} {}, x is {}", name_of(gains.type), gains.shape.to_string(),
                    x.shape.to_string()),
        fmt::format("it must be f32 ({}){}", columns,
                    stream ? fmt::format(", or (2, {}) with the gain for x first", columns) : ""));
  }
  if (stream && (stream->shape != x.shape || stream->type != x.type)) {
    refuse_norm(builder, op,
                fmt::format("the stream is {} {}, x is {} {}", name_of(stream->type),
                            stream->shape.to_string(), name_of(x.type), x.shape.to_string()),
                "they must agree");
  }
  const DataType y_type = result_type(builder, op, x, to);
  Tensor y = builder.activation(x.shape, y_type);
  const Kernel& kernel =
      builder.select({Op::kRmsNorm, {x.type, y_type}, facts_of(builder, x.shape)});
  const uint64_t step = rows_per_node(builder, x);
  for (uint64_t row = 0; row < rows; row += step) {
    const uint64_t count = std::min(step, rows - row);
    const Tensor part = x.row_slice(row, count);
    Node node;
    node.kernel = &kernel;
    // Every binding needs a buffer; without a stream nothing reads or writes the second one. The
    // shader declares it writable, so it gets a buffer that the node writes anyway: validation
    // checks declarations.
    node.buffers = {{part, Access::kRead},
                    stream ? BufferUse{stream->row_slice(row, count), Access::kReadWrite}
                           : BufferUse{y.row_slice(row, count), Access::kWrite},
                    {gains, Access::kRead},
                    {y.row_slice(row, count), Access::kWrite}};
    shader::RmsNormParams params{};
    params.rows = static_cast<uint32_t>(count);
    params.columns = static_cast<uint32_t>(columns);
    params.gain = normalized ? 1 : 0;
    params.epsilon = epsilon;
    node.set_params(params);
    node.constants = {{RMS_STREAM, !stream      ? uint32_t{RMS_PLAIN}
                                   : normalized ? uint32_t{RMS_ADD_NORM}
                                                : uint32_t{RMS_ADD}}};
    node.groups = {static_cast<uint32_t>(count), 1, 1};
    node.work.bytes =
        part.bytes() * (stream ? 3 : 1) + row_bytes(y_type, columns) * count + gains.bytes();
    node.work.flops = count * columns * (normalized ? 8 : stream ? 5 : 4);
    builder.add(std::move(node));
  }
  return y;
}

}  // namespace

Tensor rms_norm(ProgramBuilder& builder, const Tensor& x, const Tensor& gain, float epsilon,
                std::optional<DataType> to) {
  return root_mean_square(builder, x, nullptr, gain, epsilon, to);
}

Tensor add_rms_norm(ProgramBuilder& builder, const Tensor& stream, const Tensor& x,
                    const Tensor& gains, float epsilon, std::optional<DataType> to) {
  return root_mean_square(builder, x, &stream, gains, epsilon, to);
}

void norm_columns(ProgramBuilder& builder, const Tensor& x, uint64_t first_column,
                  const Tensor& gains, float epsilon, bool centered) {
  check_rows(builder, "norm of columns", x);
  const uint64_t all = x.shape.columns(), rows = x.shape.rows();
  if (gains.type != DataType::kF32 || gains.shape.rank() != 2 || gains.shape.elements() == 0 ||
      first_column > all || gains.shape.elements() > all - first_column)
    refuse_norm(builder, "norm of columns",
                fmt::format("the gains are {} {}, x is {}, from column {}", name_of(gains.type),
                            gains.shape.to_string(), x.shape.to_string(), first_column),
                "they must be f32 (groups, columns), and no more than x has");
  const uint64_t groups = gains.shape[0], columns = gains.shape[1];
  const uint64_t together = all | first_column | columns;
  if (x.type == DataType::kF16 && together % 2 != 0)
    refuse_norm(builder, "norm of columns",
                fmt::format("{} columns from column {} of {} halves", columns, first_column, all),
                "two halves share a word: all three must be even");
  const ShapeFacts facts = together % 4 == 0 ? ShapeFacts{kColumnsMultipleOf4} : kAnyShape;
  const Kernel& kernel = builder.select({Op::kNormColumns, {x.type, x.type}, facts});
  const uint64_t step = rows_per_node(builder, x);
  for (uint64_t row = 0; row < rows; row += step) {
    const uint64_t count = std::min(step, rows - row);
    Node node;
    node.kernel = &kernel;
    node.buffers = {{x.row_slice(row, count), Access::kReadWrite}, {gains, Access::kRead}};
    shader::NormColumnsParams params{};
    params.row_stride = static_cast<uint32_t>(all);
    params.first_column = static_cast<uint32_t>(first_column);
    params.columns = static_cast<uint32_t>(columns);
    params.epsilon = epsilon;
    node.set_params(params);
    node.constants = {{COLUMNS_CENTERED, centered ? 1u : 0u}};
    node.groups = {static_cast<uint32_t>(count), static_cast<uint32_t>(groups), 1};
    const uint64_t elements = count * gains.shape.elements();
    node.work.bytes = 2 * elements * size_of(x.type) + gains.bytes();
    node.work.flops = elements * (centered ? 6 : 4);
    builder.add(std::move(node));
  }
}

Tensor layer_norm(ProgramBuilder& builder, const Tensor& x, const Tensor& gain_bias, float epsilon,
                  const std::optional<Tensor>& residual, std::optional<DataType> to) {
  check_rows(builder, "layer norm", x);
  uint64_t columns = x.shape.columns();
  if (gain_bias.shape != Shape{2, columns} || gain_bias.type != DataType::kF32) {
    refuse_norm(builder, "layer norm",
                fmt::format("gain and bias are {} {}, x is {}", name_of(gain_bias.type),
                            gain_bias.shape.to_string(), x.shape.to_string()),
                fmt::format("they must be f32 (2, {}), gain first", columns));
  }
  if (residual && (residual->shape != x.shape || residual->type != x.type)) {
    refuse_norm(builder, "layer norm",
                fmt::format("the residual is {} {}, x is {} {}", name_of(residual->type),
                            residual->shape.to_string(), name_of(x.type), x.shape.to_string()),
                "they must agree");
  }
  const DataType y_type = result_type(builder, "layer norm", x, to);
  Tensor y = builder.activation(x.shape, y_type);
  const Kernel& kernel =
      builder.select({Op::kLayerNorm, {x.type, y_type}, facts_of(builder, x.shape)});
  const bool keeps_rows = kernel.names(RowConstant::KEEPS_ROWS);
  const uint64_t tile = kernel.find(RowConstant::TILE_ROWS).value_or(1);
  uint64_t rows = x.shape.rows(), step = rows_per_node(builder, x);
  for (uint64_t row = 0; row < rows; row += step) {
    uint64_t count = std::min(step, rows - row);
    Tensor part = x.row_slice(row, count);
    Tensor added = residual ? residual->row_slice(row, count) : part;
    Node node;
    node.kernel = &kernel;
    node.buffers = {{part, Access::kRead},
                    {added, Access::kRead},
                    {gain_bias, Access::kRead},
                    {y.row_slice(row, count), Access::kWrite}};
    shader::LayerNormParams params{};
    params.rows = static_cast<uint32_t>(count);
    params.columns = static_cast<uint32_t>(columns);
    params.epsilon = epsilon;
    node.set_params(params);
    node.constants = {{NORM_RESIDUAL, residual ? 1u : 0u}};
    if (keeps_rows) node.constants.push_back({NORM_COLUMNS, params.columns});
    node.groups = {static_cast<uint32_t>((count + tile - 1) / tile), 1, 1};
    node.work.bytes =
        part.bytes() * (residual ? 2 : 1) + row_bytes(y_type, columns) * count + gain_bias.bytes();
    node.work.flops = count * columns * (residual ? 8 : 7);
    builder.add(std::move(node));
  }
  return y;
}

Tensor softmax(ProgramBuilder& builder, const Tensor& x, const SoftmaxOptions& options) {
  check_rows(builder, "softmax", x);
  uint64_t columns = x.shape.columns(), rows = x.shape.rows();
  uint64_t rows_per_count = std::max(options.rows_per_count, 1u);
  if (options.control && rows > 0 &&
      !fits(options.counts, (rows - 1) / rows_per_count + 1, *options.control)) {
    refuse_norm(
        builder, "softmax",
        fmt::format("{} rows, {} to a count, need more than {} counts at word {} of control {} "
                    "{}",
                    rows, rows_per_count, options.counts.count, options.counts.word,
                    name_of(options.control->type), options.control->shape.to_string()),
        "make control, a u32 tensor, larger or rows_per_count right");
  }
  Tensor y = builder.activation(x.shape, x.type);
  const Kernel& kernel =
      builder.select({Op::kSoftmax, {x.type, x.type}, facts_of(builder, x.shape)});
  uint64_t step = rows_per_node(builder, x);
  for (uint64_t row = 0; row < rows; row += step) {
    uint64_t count = std::min(step, rows - row);
    Tensor part = x.row_slice(row, count);
    Node node;
    node.kernel = &kernel;
    // Every binding needs a buffer; without counts nothing reads the second one.
    node.buffers = {{part, Access::kRead},
                    {options.control ? *options.control : part, Access::kRead},
                    {y.row_slice(row, count), Access::kWrite}};
    shader::SoftmaxParams params{};
    params.columns = static_cast<uint32_t>(columns);
    params.first_row = static_cast<uint32_t>(row);
    params.counts = options.counts.word;
    params.rows_per_count = static_cast<uint32_t>(rows_per_count);
    params.scale = options.scale;
    node.set_params(params);
    node.constants = {{SOFTMAX_LOGARITHM, options.logarithm ? 1u : 0u},
                      {SOFTMAX_COUNTS, options.control ? 1u : 0u},
                      {SOFTMAX_CAUSAL, options.causal_period}};
    node.groups = {static_cast<uint32_t>(count), 1, 1};
    node.work.bytes = part.bytes() * 2;
    node.work.flops = count * columns * 5;
    builder.add(std::move(node));
  }
  return y;
}

}  // namespace mulciber
