#include "ops/latent_attention.h"

#include <fmt/format.h>

#include "mulciber/error.h"
#include "ops/attention_nodes.h"
#include "runtime/op.h"
#include "shaders/latent_attention.h"

namespace mulciber {

Tensor latent_attention(ProgramBuilder& builder, const HeadColumns& q, const Tensor& cache,
                        const AttentionOptions& options) {
  const auto refuse = [&](std::string problem, const char* remedy) {
    throw ShapeError(builder.path() + ": latent_attention", std::move(problem), remedy);
  };
  if (options.kv_heads != 1 || options.value_size > options.head_size ||
      cache.shape.columns() != options.head_size)
    refuse(fmt::format("the cache is {}, of {} heads with keys of {} and values of {}",
                       cache.shape.to_string(), options.kv_heads, options.head_size,
                       options.value_size),
           "a position is one key for all heads, whose last columns are its value");
  const HeadColumns k{cache, 0}, v{cache, options.head_size - options.value_size};
  const AttentionSizes sizes = check_with_values(builder, q, k, v, options, MAX_LATENT_SIZE);
  if (sizes.kv_len == 0) return attention_of_nothing(builder, q.tensor, options);
  const ShapeFacts facts = facts_of(q, k, v, options, selected_sizes(builder, sizes));
  constexpr ShapeFacts kNeeded = kScaledProducts | kContiguousKeys | kNoAncestry;
  if ((facts & kNeeded) != kNeeded || options.rows_per_kv != 1 || options.soft_cap != 0 ||
      options.sinks || options.bias != AttentionBias::kNone)
    refuse("options of attention() are asked for that no row of latent attention has",
           "leave them out");
  const Problem problem{Op::kLatentAttention, {q.tensor.type, cache.type}, facts};
  return attention_by(builder.select(problem), builder, q, k, v, options, sizes, nullptr);
}

}  // namespace mulciber
