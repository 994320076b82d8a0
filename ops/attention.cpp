#include "ops/attention.h"

#include "mulciber/error.h"
#include "ops/attention_nodes.h"
#include "ops/elementwise.h"
#include "runtime/op.h"
#include "shaders/latent_attention.h"

namespace mulciber {

bool same_storage(const Tensor& a, const Tensor& b) {
  return a.arena_id == b.arena_id && a.byte_offset == b.byte_offset && a.type == b.type &&
         a.shape == b.shape && a.view.buffer == b.view.buffer && a.view.offset == b.view.offset;
}

Tensor attention(ProgramBuilder& builder, const HeadColumns& q, const HeadColumns& k,
                 const HeadColumns& v, const AttentionOptions& options) {
  const AttentionSizes sizes = check_with_values(builder, q, k, v, options);
  if (sizes.kv_len == 0) return attention_of_nothing(builder, q.tensor, options);
  Problem problem{Op::kAttention, {q.tensor.type, k.tensor.type}};
  const AttentionSizes selected = selected_sizes(builder, sizes);
  problem.facts = facts_of(q, k, v, options, selected);
  if (options.value_size == options.head_size && options.rows_per_kv == 1) {
    problem.extents = {selected.rows, sizes.q_len,       sizes.kv_len,
                       options.heads, options.head_size, options.kv_heads};
  }
  return attention_by(builder.select(problem), builder, q, k, v, options, sizes, nullptr);
}

// Vulkan binds no empty buffer, and kernels load a first key before they mask it.
Tensor attention_of_nothing(ProgramBuilder& builder, const Tensor& q,
                            const AttentionOptions& options) {
  return fill(builder, {q.shape[0], q.shape[1], uint64_t{options.heads} * options.value_size}, 0,
              q.type);
}

Tensor attention_map(ProgramBuilder& builder, const HeadColumns& q, const HeadColumns& k,
                     const AttentionOptions& options) {
  const AttentionSizes sizes = check_attention(builder, q, k, options, MAX_LATENT_SIZE);
  if (sizes.kv_len == 0)
    throw ShapeError(builder.path(), "a map over no keys has no elements", "leave it out");
  Problem problem{Op::kAttentionMap, {q.tensor.type, k.tensor.type}};
  problem.facts = attention_facts(
      {options.head_size, q.tensor.shape.columns(), q.first, k.tensor.shape.columns(), k.first},
      options, sizes);
  const Kernel& kernel = builder.select(problem);

  const Tensor result =
      builder.activation({sizes.rows, options.heads, sizes.q_len, sizes.kv_len}, DataType::kF32);
  const shader::AttentionParams params = params_of(q, k, k, options, sizes, 1);
  const uint64_t queries = params.queries;
  Work work;
  work.bytes = queries * options.heads * options.head_size * size_of(q.tensor.type) +
               sizes.kv_len * options.kv_heads * options.head_size * size_of(k.tensor.type) +
               queries * options.heads * sizes.kv_len * sizeof(float);
  work.flops =
      queries * options.heads * sizes.kv_len * options.head_size * score_operations(options.score);
  add_nodes(builder, kernel, {q.tensor, k.tensor, result}, params, options, sizes, queries, 1,
            work);
  return result;
}

}  // namespace mulciber
