#include "ops/append_attention.h"

#include "mulciber/error.h"
#include "ops/append_cache.h"
#include "ops/attention_nodes.h"
#include "runtime/op.h"

namespace mulciber {
namespace {

Problem append_problem(const ProgramBuilder& builder, const Tensor& qkv, const Tensor& cache,
                       const std::optional<RopeOptions>& rope, const AttentionOptions& options) {
  const HeadColumns q{qkv, 0}, k{cache, 0}, v{cache, options.kv_heads * options.head_size};
  const AttentionSizes sizes = sizes_of(builder, qkv, cache, options);
  ShapeFacts facts = facts_of(q, k, v, options, selected_sizes(builder, sizes));
  // Kernel rows that append rotate two whole words at a time.
  if (rope && rope->rotary_size % 4 != 0) facts &= ~kDepthMultipleOf4;
  return {Op::kAppendAttention, {qkv.type, cache.type}, facts};
}

}  // namespace

bool appends_in_attention(const ProgramBuilder& builder, const Tensor& qkv, const Tensor& cache,
                          const std::optional<RopeOptions>& rope, const AttentionOptions& options) {
  if (qkv.shape[1] != 1) return false;
  const Kernel* row =
      select_kernel(builder.capabilities(), append_problem(builder, qkv, cache, rope, options))
          .kernel;
  return row && appends(*row);
}

Tensor append_attention(ProgramBuilder& builder, const Tensor& qkv, const Tensor& cache,
                        const std::optional<RopeOptions>& rope, const AttentionOptions& options) {
  const HeadColumns q{qkv, 0}, k{cache, 0}, v{cache, options.kv_heads * options.head_size};
  const AttentionSizes sizes = check_with_values(builder, q, k, v, options);
  const auto& control = options.control;
  if (sizes.q_len != 1 || sizes.kv_len == 0 || options.rows_per_kv != 1 || options.query_offset ||
      options.value_size != options.head_size || !control || !control->key_counts ||
      control->key_count_extra != 1 || control->ancestry ||
      qkv.shape.columns() != (options.heads + 2ull * options.kv_heads) * options.head_size ||
      cache.shape.columns() != 2ull * options.kv_heads * options.head_size ||
      (rope && (rope->positions.word != control->key_counts->word ||
                rope->pages.has_value() != control->pages.has_value()))) {
    throw ShapeError(
        builder.path(),
        "attention that appends is not of one position after the keys that are counted",
        "append and attend in turn");
  }
  const Kernel& kernel = builder.select(append_problem(builder, qkv, cache, rope, options));
  if (!appends(kernel)) {
    if (rope) {
      rope_append(builder, qkv, cache, *rope);
    } else {
      append_cache(builder, qkv, cache,
                   {.first_column = options.heads * options.head_size,
                    .control = control->tensor,
                    .positions = *control->key_counts,
                    .pages = control->pages});
    }
  }
  return attention_by(kernel, builder, q, k, v, options, sizes, rope ? &*rope : nullptr);
}

}  // namespace mulciber
