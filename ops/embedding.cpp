#include "ops/embedding.h"

#include <fmt/format.h>

#include "base/blocks.h"
#include "mulciber/error.h"
#include "ops/row_slices.h"
#include "runtime/op.h"
#include "shaders/embedding.h"

namespace mulciber {
namespace {

void check(const ProgramBuilder& builder, const Tensor& table, const EmbeddingOptions& options) {
  auto refuse = [&](std::string problem, std::string remedy) {
    throw ShapeError(builder.path() + ": embedding", std::move(problem), std::move(remedy));
  };
  if (table.shape.rank() != 2 || table.shape.elements() == 0 || table.type == DataType::kU32) {
    refuse(fmt::format("the table is {} {}", name_of(table.type), table.shape.to_string()),
           "pass (vocabulary, columns) of any type but u32");
  }
  if (options.result != DataType::kF32 && options.result != DataType::kF16) {
    refuse(fmt::format("the result cannot be {}", name_of(options.result)), "ask for f32 or f16");
  }
  uint64_t tokens = uint64_t{options.rows} * options.length;
  if (!fits(options.tokens, tokens, options.control)) {
    refuse(fmt::format("{} ids, {} from word {}, do not fit control {} {}", tokens,
                       options.tokens.count, options.tokens.word, name_of(options.control.type),
                       options.control.shape.to_string()),
           "control must be u32 and hold every id");
  }
  if (options.first_position && !(fits(*options.first_position, 1, options.control) &&
                                  serves_rows(*options.first_position, options.rows))) {
    refuse(fmt::format("{} first positions from word {} do not serve {} rows",
                       options.first_position->count, options.first_position->word, options.rows),
           "control must hold one, or one for each row");
  }
  if (options.positions) {
    const Tensor& positions = *options.positions;
    if (positions.type != DataType::kF32 || positions.shape.rank() != 2 ||
        positions.shape.elements() == 0 || positions.shape.columns() != table.shape.columns()) {
      refuse(fmt::format("positions are {} {}, the table is {}", name_of(positions.type),
                         positions.shape.to_string(), table.shape.to_string()),
             "positions must be f32 with as many columns as the table");
    }
  }
}

}  // namespace

Tensor embedding(ProgramBuilder& builder, const Tensor& table, const EmbeddingOptions& options) {
  check(builder, table, options);
  uint64_t columns = table.shape.columns(), vocabulary = table.shape[0];
  uint64_t tokens = uint64_t{options.rows} * options.length;
  Tensor y = builder.activation({options.rows, options.length, columns}, options.result);
  ShapeFacts facts = columns % 4 == 0 ? kColumnsMultipleOf4 : kAnyShape;
  const Kernel& kernel = builder.select({Op::kEmbedding, {options.result, table.type}, facts});
  const uint64_t per_group =
      local_size(kernel, builder.capabilities()) * uint64_t{kernel.constant(RowConstant::ELEMENTS)};

  const uint32_t format = block_format(table.type);
  Tensor positions = options.positions ? *options.positions : table;
  uint64_t position_count = positions.shape[0];
  uint64_t token_step = rows_per_node(builder, y), table_step = rows_per_node(builder, table);
  // Without positions any slice of the table is bound in their place.
  uint64_t position_step = options.positions ? rows_per_node(builder, positions) : position_count;
  for (uint64_t token = 0; token < tokens; token += token_step) {
    Tensor part = y.row_slice(token, std::min(token_step, tokens - token));
    for (uint64_t id = 0; id < vocabulary; id += table_step) {
      Tensor rows = table.row_slice(id, std::min(table_step, vocabulary - id));
      for (uint64_t position = 0; position < position_count; position += position_step) {
        uint64_t count = std::min(position_step, position_count - position);
        Node node;
        node.kernel = &kernel;
        node.buffers = {
            {rows, Access::kRead},
            {options.control, Access::kRead},
            {options.positions ? positions.row_slice(position, count) : rows, Access::kRead},
            // Later slices keep what earlier ones wrote.
            {part, id == 0 && position == 0 ? Access::kWrite : Access::kReadWrite}};
        shader::EmbeddingParams params{};
        params.tokens = static_cast<uint32_t>(part.shape.rows());
        params.columns = static_cast<uint32_t>(columns);
        params.first_token = static_cast<uint32_t>(token);
        params.row_length = options.length;
        params.ids = options.tokens.word;
        params.vocabulary = static_cast<uint32_t>(vocabulary);
        params.table_begin = static_cast<uint32_t>(id);
        params.table_end = static_cast<uint32_t>(id + rows.shape.rows());
        params.first_positions =
            options.first_position ? options.first_position->word : EMBEDDING_NO_POSITIONS;
        params.position_stride = options.first_position ? stride_of(*options.first_position) : 0;
        params.positions = static_cast<uint32_t>(position_count);
        params.position_begin = static_cast<uint32_t>(position);
        params.position_end = static_cast<uint32_t>(position + count);
        params.scale = options.scale;
        node.set_params(params);
        node.constants = {{EMBEDDING_POSITIONS, options.positions ? 1u : 0u}};
        if (format != 0) node.constants.push_back({WEIGHT_FORMAT, format});
        uint64_t elements = part.shape.elements();
        node.groups = {groups_for(builder, (elements + per_group - 1) / per_group), 1, 1};
        // The floor counts one pass, and belongs to the first node of each part of the result.
        if (id == 0 && position == 0) {
          node.work.bytes = part.bytes() + part.shape.rows() * row_bytes(table.type, columns) +
                            part.shape.rows() * 4 + (options.positions ? elements * 4 : 0);
          node.work.flops = elements * (options.positions ? 2 : 1);
        }
        builder.add(std::move(node));
      }
    }
  }
  return y;
}

}  // namespace mulciber
