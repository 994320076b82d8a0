#include "ops/attention_nodes.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "mulciber/error.h"
#include "ops/attention_combine.h"
#include "ops/row_slices.h"
#include "runtime/op.h"
#include "shaders/cache_pages.h"

namespace mulciber {
namespace {

static_assert(static_cast<uint32_t>(AttentionBias::kRelative) == BIAS_RELATIVE &&
              static_cast<uint32_t>(AttentionBias::kMask) == BIAS_MASK &&
              static_cast<uint32_t>(AttentionScore::kLeaky) == SCORE_LEAKY &&
              static_cast<uint32_t>(AttentionScore::kDistance) == SCORE_DISTANCE &&
              static_cast<uint32_t>(AttentionCenter::kPredicted) == CENTER_PREDICTED);

[[noreturn]] void refuse_nodes(const ProgramBuilder& builder, std::string problem,
                               std::string remedy) {
  throw ShapeError(builder.path(), std::move(problem), std::move(remedy));
}

/// Queries per workgroup of the kernel row that serves every kind of attention: the queries of a
/// tile share one list of keys.
uint32_t baseline_queries(const AttentionOptions& options) {
  return whole_tiles(options, 4) ? 4 : 1;
}

std::vector<SpecializationConstant> constants_of(const AttentionOptions& options,
                                                 const AttentionSizes& sizes, uint32_t pack,
                                                 const Tensor& kv) {
  // The only query of a decode step is at the last key: it sees all keys.
  const bool causal = options.causal && (sizes.q_len > 1 || options.query_offset);
  const bool ancestry = options.control && options.control->ancestry;
  const bool paged = options.control && options.control->pages;
  const float sigma = options.center_sigma, narrowness = sigma == 0 ? 0 : 1 / (2 * sigma * sigma);
  return {{CONSTANT_HEAD_SIZE, options.head_size},
          {CONSTANT_VALUE_SIZE, options.value_size},
          {CONSTANT_CAUSAL, causal ? 1u : 0u},
          {CONSTANT_ANCESTRY, ancestry ? 1u : 0u},
          {CONSTANT_WINDOWED, options.window != 0 ? 1u : 0u},
          {CONSTANT_SOFT_CAPPED, options.soft_cap != 0 ? 1u : 0u},
          {CONSTANT_PACK, pack},
          {CONSTANT_BIAS, static_cast<uint32_t>(options.bias)},
          {CONSTANT_BIAS_SPAN, options.bias_span},
          {CONSTANT_SCORE, static_cast<uint32_t>(options.score)},
          {CONSTANT_SLOPE, std::bit_cast<uint32_t>(options.leaky_slope)},
          {CONSTANT_HARD, options.hard ? 1u : 0u},
          {CONSTANT_CENTER, static_cast<uint32_t>(options.center)},
          {CONSTANT_REACH, std::bit_cast<uint32_t>(options.center_reach)},
          {CONSTANT_NARROWNESS, std::bit_cast<uint32_t>(narrowness)},
          {CONSTANT_TILE, baseline_queries(options)},
          {CONSTANT_PATTERN_QUERIES, options.pattern.block_queries},
          {CONSTANT_PATTERN_KEYS, options.pattern.block_keys},
          {CONSTANT_PATTERN_BLOCKS, options.pattern.query_blocks},
          {CONSTANT_GLOBALS, options.global_tokens ? 1u : 0u},
          {CONSTANT_SINKS, options.sinks ? 1u : 0u},
          {CONSTANT_CACHE_PAGE, paged ? static_cast<uint32_t>(kv.shape[1]) : 0u}};
}

/// Slices q or the result for one node: `lines_per_row` rows for each row of keys.
Tensor slice(const Tensor& tensor, uint64_t lines_per_row, uint64_t first, uint64_t count,
             uint64_t all) {
  if (first == 0 && count == all) return tensor;
  return tensor.row_slice(first * lines_per_row, count * lines_per_row);
}

/// Queries that a workgroup of a kernel row serves: the row's tile constant, if any.
uint32_t queries_per_group(const Kernel& kernel, const AttentionOptions& options) {
  return kernel.find(RowConstant::TILE_Q).value_or(baseline_queries(options));
}

constexpr uint32_t kBuffersOfAppend = 7;

/// Adds the operands of a row that appends: without rotation nothing reads angles and gains.
void add_append(Node& node, const NodeTensors& tensors) {
  node.buffers[1].access = Access::kReadWrite;
  const RopeOptions* rope = tensors.rope;
  const Tensor& angles = rope ? rope->angles : node.buffers[0].tensor;
  node.buffers.push_back({angles, Access::kRead});
  node.buffers.push_back({rope && rope->gains ? *rope->gains : angles, Access::kRead});
  if (!rope) return;
  const auto add = [&](uint32_t id, uint64_t value) {
    node.constants.push_back({id, static_cast<uint32_t>(value)});
  };
  add(CONSTANT_ROTARY_SIZE, rope->rotary_size);
  add(CONSTANT_INTERLEAVED, rope->interleaved);
  add(CONSTANT_GAINS, rope->gains.has_value());
  add(CONSTANT_EPSILON, std::bit_cast<uint32_t>(rope->epsilon));
  add(CONSTANT_ANGLE_ROWS, rope->angles.shape[0]);
}

/// Workgroups that share the keys of one tile of queries: enough to fill the device, each with
/// enough keys.
uint32_t splits_of(const Kernel& kernel, uint64_t tiles, uint64_t keys) {
  const uint64_t wanted = kernel.constant(RowConstant::WORKGROUPS);
  const uint64_t least = kernel.constant(RowConstant::LEAST_KEYS);
  const uint64_t most = std::clamp<uint64_t>(keys / least, 1, 64);
  return static_cast<uint32_t>(
      std::clamp<uint64_t>(wanted / std::max<uint64_t>(tiles, 1), 1, most));
}

}  // namespace

shader::AttentionParams params_of(const HeadColumns& q, const HeadColumns& k, const HeadColumns& v,
                                  const AttentionOptions& options, const AttentionSizes& sizes,
                                  uint32_t pack) {
  shader::AttentionParams params{};
  params.queries = static_cast<uint32_t>(sizes.q_len * options.rows_per_kv * pack);
  params.q_len = static_cast<uint32_t>(sizes.q_len);
  params.kv_len = static_cast<uint32_t>(sizes.kv_len);
  params.group = options.heads / options.kv_heads;
  params.q_columns = static_cast<uint32_t>(q.tensor.shape.columns());
  params.q_first = q.first;
  params.kv_columns = static_cast<uint32_t>(k.tensor.shape.columns());
  params.k_first = k.first;
  params.v_first = v.first;
  const AttentionControl control = options.control.value_or(AttentionControl{});
  params.key_counts = word_or_none(control.key_counts);
  params.key_count_stride = control.key_counts ? stride_of(*control.key_counts) : 0;
  params.key_count_extra = control.key_count_extra;
  params.key_table = word_or_none(control.pages ? control.pages : control.ancestry);
  params.head_mask = word_or_none(control.head_mask);
  params.scale = options.scale;
  params.query_offset = options.query_offset.value_or(QUERY_OFFSET_FROM_COUNT);
  params.window = std::min(options.window, kMaxWindow);
  params.soft_cap = options.soft_cap;
  params.bias = word_or_none(control.bias);
  params.pattern = word_or_none(control.pattern);
  params.globals = word_or_none(control.globals);
  params.score_vector = word_or_none(control.score_vector);
  params.centers = word_or_none(control.centers);
  return params;
}

bool appends(const Kernel& kernel) { return kernel.reflection.buffer_count == kBuffersOfAppend; }

void add_nodes(ProgramBuilder& builder, const Kernel& kernel, const NodeTensors& tensors,
               shader::AttentionParams params, const AttentionOptions& options,
               const AttentionSizes& sizes, uint64_t tiles, uint32_t pack, const Work& row_work) {
  const uint64_t all = sizes.kv_rows;
  const bool shared = params.key_table >= 0;
  // With ancestry or pages a row may read any part of the cache, so the cache is not sliced.
  const uint64_t count = rows_per_node(builder, kernel, all,
                                       {tensors.q.bytes() / all, tensors.result.bytes() / all,
                                        shared ? 0 : tensors.kv.bytes() / all});
  for (uint64_t first = 0; first < all; first += count) {
    const uint64_t rows = std::min(count, all - first);
    const auto part = [&](const Tensor& tensor) {
      return slice(tensor, tensor.shape.rows() / all, first, rows, all);
    };
    const Tensor q = part(tensors.q);
    Node node;
    node.kernel = &kernel;
    // Every binding needs a buffer; without control nothing reads the fourth one.
    node.buffers = {{q, Access::kRead},
                    {shared ? tensors.kv : part(tensors.kv), Access::kRead},
                    {part(tensors.result), Access::kWrite},
                    {options.control ? options.control->tensor : q, Access::kRead}};
    params.first_kv_row = static_cast<uint32_t>(first);
    node.set_params(params);
    node.constants = constants_of(options, sizes, pack, tensors.kv);
    uint32_t splits = 1;
    if (tensors.partials) {
      splits = static_cast<uint32_t>(tensors.partials->shape[2]);
      node.buffers[3].access = Access::kReadWrite;  // for split_counters
      node.buffers.push_back({*tensors.partials, Access::kReadWrite});
      node.constants.push_back({CONSTANT_NUM_SPLITS, splits});
      // A single split uses no counters.
      if (splits > 1)
        node.constants.push_back({CONSTANT_SPLIT_COUNTERS, options.control->split_counters->word});
    }
    if (tensors.key_parts > 1) node.constants.push_back({CONSTANT_KEY_PARTS, tensors.key_parts});
    if (appends(kernel)) add_append(node, tensors);
    node.groups = {static_cast<uint32_t>(tiles) * splits * tensors.key_parts, options.heads / pack,
                   static_cast<uint32_t>(rows)};
    node.work.bytes = rows * row_work.bytes;
    node.work.flops = rows * row_work.flops;
    builder.add(std::move(node));
  }
}

AttentionSizes check_with_values(const ProgramBuilder& builder, const HeadColumns& q,
                                 const HeadColumns& k, const HeadColumns& v,
                                 const AttentionOptions& options, uint32_t most) {
  const AttentionSizes sizes = check_attention(builder, q, k, options, most);
  if (options.value_size == 0 || options.value_size > most) {
    refuse_nodes(builder, fmt::format("value size {}", options.value_size),
                 fmt::format("it must be 1 to {}", most));
  }
  check_head_columns(builder, "v", v, options.kv_heads, options.value_size);
  if (!same_storage(k.tensor, v.tensor)) {
    refuse_nodes(builder, "keys and values are different tensors",
                 "make them columns of one tensor");
  }
  return sizes;
}

AttentionSizes selected_sizes(const ProgramBuilder& builder, AttentionSizes sizes) {
  sizes.rows = builder.rows_as(sizes.rows);
  sizes.kv_rows = builder.rows_as(sizes.kv_rows);
  return sizes;
}

ShapeFacts facts_of(const HeadColumns& q, const HeadColumns& k, const HeadColumns& v,
                    const AttentionOptions& options, const AttentionSizes& sizes) {
  return attention_facts({options.head_size, options.value_size, q.tensor.shape.columns(), q.first,
                          k.tensor.shape.columns(), k.first, v.first},
                         options, sizes);
}

Tensor attention_by(const Kernel& kernel, ProgramBuilder& builder, const HeadColumns& q,
                    const HeadColumns& k, const HeadColumns& v, const AttentionOptions& options,
                    const AttentionSizes& sizes, const RopeOptions* rope) {
  const uint64_t columns = uint64_t{options.heads} * options.value_size;
  const Tensor result = builder.activation({sizes.rows, sizes.q_len, columns}, q.tensor.type);
  // Heads with common keys share one pass over them.
  const uint32_t pack = options.heads / options.kv_heads;
  const shader::AttentionParams params = params_of(q, k, v, options, sizes, pack);
  const uint64_t positions = sizes.q_len * options.rows_per_kv;
  const KeptKeys kept = kept_keys(options, sizes);
  // Hard attention reads one value per query and head and sums none.
  const uint64_t values = kept.keys * options.kv_heads;
  // Values that are columns of the keys are read together with them.
  const bool in_keys =
      v.first >= k.first && v.first < k.first + options.kv_heads * options.head_size;
  const uint64_t values_read = in_keys        ? 0
                               : options.hard ? std::min(values, positions * options.heads)
                                              : values;
  const uint64_t operations = score_operations(options.score) * options.head_size +
                              (options.hard ? 0 : uint64_t{2} * options.value_size);
  Work work;
  work.bytes = positions * options.heads * (options.head_size + options.value_size) *
                   size_of(q.tensor.type) +
               row_bytes(k.tensor.type, k.tensor.shape.columns()) *
                   (values * options.head_size + values_read * options.value_size) /
                   k.tensor.shape.columns();
  work.flops = kept.pairs * options.rows_per_kv * options.heads * operations;
  if (appends(kernel))
    work.bytes += 2ull * options.kv_heads * options.head_size * size_of(q.tensor.type) +
                  row_bytes(k.tensor.type, k.tensor.shape.columns());
  const uint64_t per_group = queries_per_group(kernel, options);
  const uint64_t tiles = (params.queries + per_group - 1) / per_group;
  // The sums are followed by a maximum and a total, padded to a multiple of four.
  const uint64_t floats = options.value_size + 4;
  const AttentionSizes selected = selected_sizes(builder, sizes);
  const uint64_t all_tiles = selected.kv_rows * options.kv_heads * tiles;
  const uint32_t parts =
      key_parts(builder.capabilities(), kernel, all_tiles, sizes.kv_len, options.key_parts);
  const uint64_t lines = sizes.rows * sizes.q_len * options.heads;
  if (parts > 1 && lines * parts * floats * 4 <= builder.capabilities().max_storage_range) {
    const Tensor found = builder.activation({lines, parts, floats}, DataType::kF32);
    work.bytes += found.bytes() / sizes.kv_rows;
    add_nodes(builder, kernel, {q.tensor, k.tensor, found, {}, nullptr, parts}, params, options,
              sizes, tiles, pack, work);
    attention_combine(builder, found, result);
    return result;
  }
  NodeTensors tensors{q.tensor, k.tensor, result, {}, rope};
  if (kernel.names(RowConstant::WORKGROUPS)) {
    const uint32_t splits = facts_of(q, k, v, options, selected) & kSplitKeys
                                ? splits_of(kernel, all_tiles, sizes.kv_len)
                                : 1;
    tensors.partials =
        builder.activation({sizes.rows, options.heads, splits, floats}, DataType::kF32);
  }
  add_nodes(builder, kernel, tensors, params, options, sizes, tiles, pack, work);
  return result;
}

}  // namespace mulciber
