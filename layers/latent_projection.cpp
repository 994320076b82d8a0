#include "layers/latent_projection.h"

#include "ops/copy.h"
#include "ops/norm.h"

namespace mulciber {

void HeadMatrices::operator()(ProgramBuilder& builder, const Tensor& x, const Tensor& y,
                              HeadMatmulOptions heads, const AdapterScales* adapters) const {
  heads.weight_first = first;
  heads.weight_step = step;
  heads.transposed = transposed;
  head_matmul(builder, x, weight, y, heads);
  if (!adapters) return;
  for (const HeadLowRank& change : low_ranks) {
    // x (B A)^T = (x A^T) B^T; transposed: x (B A) = (x B) A. All heads share A.
    const auto scope = builder.scope("lora");
    const Tensor &down = change.low_rank.down, &up = change.low_rank.up;
    const auto count = static_cast<uint32_t>(down.shape.rows());
    const Tensor narrow =
        builder.activation({x.shape[0], x.shape[1], uint64_t{heads.heads} * count}, x.type);
    HeadMatmulOptions in = heads, out = heads;
    in.weight_first = out.weight_first = change.first;
    in.weight_step = out.weight_step = change.step;
    in.transposed = out.transposed = change.transposed;
    in.columns = in.y_step = out.depth = out.x_step = count;
    in.y_first = out.x_first = 0;
    HeadMatmulOptions& shared = change.transposed ? out : in;
    shared.weight_first = shared.weight_step = 0;
    out.add = true;
    head_matmul(builder, x, change.transposed ? up : down, narrow, in);
    const Tensor scaled = scale_narrow(builder, narrow, change.low_rank, *adapters);
    head_matmul(builder, scaled, change.transposed ? down : up, y, out);
  }
}

Tensor LatentProjection::operator()(ProgramBuilder& builder, const Tensor& x,
                                    const AdapterScales* adapters) const {
  Tensor narrow = x;
  if (query_down) {
    narrow = (*query_down)(builder, x, adapters);
    norm_columns(builder, narrow, 0, *query_gains, epsilon, false);
  }
  const Tensor queries = query(builder, narrow, adapters);
  const Tensor key = down(builder, x, adapters);
  norm_columns(builder, key, rotated, gains, epsilon, false);
  const uint32_t from = rotated + rest, to = key_columns();
  const Tensor all =
      builder.activation({x.shape[0], x.shape[1], (uint64_t{heads} + 1) * to}, x.type);
  copy_columns(builder, queries, all,
               {.columns = rotated, .blocks = heads, .x_step = from, .into_step = to});
  copy_columns(builder, key, all, {.into_column = heads * to});
  key_up(builder, queries, all,
         {.heads = heads,
          .depth = rest,
          .columns = rank,
          .x_first = rotated,
          .x_step = from,
          .y_first = rotated,
          .y_step = to},
         adapters);
  return all;
}

Tensor LatentProjection::values(ProgramBuilder& builder, const Tensor& attended,
                                const AdapterScales* adapters) const {
  const Tensor result = builder.activation(
      {attended.shape[0], attended.shape[1], uint64_t{heads} * value_size}, attended.type);
  value_up(
      builder, attended, result,
      {.heads = heads, .depth = rank, .columns = value_size, .x_step = rank, .y_step = value_size},
      adapters);
  return result;
}

}  // namespace mulciber
