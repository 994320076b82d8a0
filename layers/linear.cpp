#include "layers/linear.h"

#include "mulciber/error.h"
#include "ops/elementwise.h"
#include "ops/permute_columns.h"
#include "ops/quantize.h"

namespace mulciber {

Tensor Linear::operator()(ProgramBuilder& builder, const Operand& x, Activation activation,
                          bool gated, const AdapterScales* adapters) const {
  if (x.norm && column_order)
    throw ShapeError(builder.path(), "a norm stands before columns in another order", "");
  if (low_rank && adapters) {
    // Adapters change the product: activation and gates follow the sum.
    const Tensor y = matmul(builder, operand(builder, x.x), weight,
                            {.bias = bias, .more_segments = more_segments});
    add_low_rank(builder, x.x, y, *adapters);
    if (gated) return gate_pairs(builder, y, activation);
    return activation == Activation::kNone ? y : activate(builder, y, activation);
  }
  return matmul(builder, x.norm ? x.x : operand(builder, x.x), weight,
                {.norm = x.norm,
                 .bias = bias,
                 .activation = activation,
                 .gated = gated,
                 .more_segments = more_segments});
}

Tensor Linear::padded(ProgramBuilder& builder, const Tensor& x) const {
  return matmul(builder, operand(builder, x), weight,
                {.bias = bias, .padded = true, .more_segments = more_segments});
}

void Linear::add_to(ProgramBuilder& builder, const Tensor& x, const Tensor& y,
                    const AdapterScales* adapters) const {
  matmul(builder, operand(builder, x), weight,
         {.bias = bias, .accumulate_into = y, .more_segments = more_segments});
  if (low_rank && adapters) add_low_rank(builder, x, y, *adapters);
}

Tensor scale_narrow(ProgramBuilder& builder, const Tensor& narrow, const LowRank& low_rank,
                    const AdapterScales& adapters) {
  return scale_by_row(builder, narrow,
                      {.control = adapters.control,
                       .scales = adapters.scales,
                       .per_row = adapters.per_row,
                       .first = low_rank.first,
                       .count = low_rank.count});
}

void Linear::add_low_rank(ProgramBuilder& builder, const Tensor& x, const Tensor& y,
                          const AdapterScales& adapters) const {
  const auto scope = builder.scope("lora");
  const Tensor narrow =
      scale_narrow(builder, matmul(builder, x, low_rank->down), *low_rank, adapters);
  matmul(builder, narrow, low_rank->up, {.accumulate_into = y});
}

void Linear::write_to(ProgramBuilder& builder, const Tensor& x, const Tensor& y,
                      const AdapterScales* adapters) const {
  matmul(builder, operand(builder, x), weight,
         {.bias = bias, .into = y, .more_segments = more_segments});
  if (low_rank && adapters) add_low_rank(builder, x, y, *adapters);
}

Tensor Linear::operand(ProgramBuilder& builder, const Tensor& x) const {
  if (column_order) return permute_columns(builder, x, *column_order);
  const bool quantizes = integers && x.type == DataType::kF32 &&
                         integers_pay(builder.capabilities(), builder.rows_as(x.shape.rows()));
  return quantizes ? quantize(builder, x) : x;
}

}  // namespace mulciber
