#include "layers/packing.h"

#include "ops/embedding.h"

namespace mulciber {

Tensor Packing::spread(ProgramBuilder& builder, const Tensor& x) const {
  const auto scope = builder.scope("spread");
  return embedding(
      builder, x.reshaped({x.shape.rows(), x.shape.columns()}),
      {.control = control, .tokens = tokens, .rows = rows, .length = length, .result = x.type});
}

Tensor Packing::pack(ProgramBuilder& builder, const Tensor& x) const {
  const auto scope = builder.scope("pack");
  return embedding(
      builder, x.reshaped({x.shape.rows(), x.shape.columns()}),
      {.control = control, .tokens = places, .rows = 1, .length = packed(), .result = x.type});
}

}  // namespace mulciber
