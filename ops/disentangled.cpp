#include "ops/disentangled.h"

#include <fmt/format.h>

#include <algorithm>

#include "mulciber/error.h"
#include "ops/row_slices.h"
#include "runtime/op.h"
#include "shaders/disentangled.h"

namespace mulciber {

AttentionControl disentangled_bias(ProgramBuilder& builder, const Tensor& qkv,
                                   const Tensor& distances, const DisentangledOptions& options) {
  const auto refuse = [&](std::string problem, const char* remedy) {
    throw ShapeError(builder.path() + ": disentangled_bias", std::move(problem), remedy);
  };
  const uint64_t width = uint64_t{options.heads} * options.head_size;
  if (qkv.type != DataType::kF32 || qkv.shape.rank() != 3 || width == 0 ||
      qkv.shape[2] < 2 * width || distances.type != DataType::kF32 || distances.shape.rank() != 2 ||
      distances.shape[1] < 2 * width || distances.shape[0] == 0)
    refuse(fmt::format("qkv is {} {}, distances are {} {}, for {} heads of {}", name_of(qkv.type),
                       qkv.shape.to_string(), name_of(distances.type), distances.shape.to_string(),
                       options.heads, options.head_size),
           "give f32, with a query and a key for each head");
  const uint64_t rows = qkv.shape[0], length = qkv.shape[1];
  if (!fits(options.row_of, 2 * length - 1, options.control) ||
      !fits(options.key_counts, rows, options.control))
    refuse(fmt::format("{} rows for distances, {} counts, {} rows of {} positions",
                       options.row_of.count, options.key_counts.count, rows, length),
           "give 2 * length - 1 and a count for each row");
  const uint64_t pairs = rows * options.heads * length * length;
  const uint64_t bytes = 4 * (pairs + rows);
  if (std::max({bytes, qkv.bytes(), distances.bytes()}) > builder.capabilities().max_storage_range)
    refuse(fmt::format("{} bytes of scores by distance pass what one descriptor covers", bytes),
           "use fewer rows or shorter ones");
  const Tensor y = builder.activation({pairs + rows}, DataType::kU32);
  const uint32_t terms =
      (options.content_to_position ? 1u : 0u) | (options.position_to_content ? 2u : 0u);
  Node node;
  node.kernel = &builder.select({Op::kDisentangledBias, {}, kAnyShape});
  node.buffers = {{qkv, Access::kRead},
                  {distances, Access::kRead},
                  {options.control, Access::kRead},
                  {y, Access::kWrite}};
  node.set_params(shader::DisentangledParams{
      static_cast<uint32_t>(pairs), static_cast<uint32_t>(rows), options.heads,
      static_cast<uint32_t>(length), static_cast<uint32_t>(qkv.shape[2]),
      static_cast<uint32_t>(distances.shape[0]), static_cast<uint32_t>(distances.shape[1]),
      options.row_of.word, options.key_counts.word, options.scale});
  node.constants = {{DISENTANGLED_SIZE, options.head_size}, {DISENTANGLED_TERMS, terms}};
  const uint64_t per_group = local_size(*node.kernel, builder.capabilities());
  node.groups = {groups_for(builder, (pairs + rows + per_group - 1) / per_group), 1, 1};
  node.work.bytes = rows * length * 2 * width * 4 + distances.bytes() + bytes;
  node.work.flops = 4 * pairs * options.head_size;
  builder.add(std::move(node));
  return {.tensor = y,
          .key_counts =
              ControlArray<uint32_t>{static_cast<uint32_t>(pairs), static_cast<uint32_t>(rows)},
          .bias = ControlArray<float>{0, static_cast<uint32_t>(pairs)}};
}

}  // namespace mulciber
