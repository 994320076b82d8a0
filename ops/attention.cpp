#include "ops/attention.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include <fmt/format.h>

#include "mulciber/error.h"
#include "ops/elementwise.h"
#include "ops/row_slices.h"
#include "runtime/op.h"
#include "shaders/attention.h"

namespace mulciber {
namespace {

constexpr uint32_t kMaxWindow = 1u << 29;  // positions and windows add up below 2^31

uint64_t divide_up(uint64_t a, uint64_t b) { return (a + b - 1) / b; }

static_assert(static_cast<uint32_t>(AttentionBias::kRelative) == BIAS_RELATIVE &&
              static_cast<uint32_t>(AttentionBias::kMask) == BIAS_MASK &&
              static_cast<uint32_t>(AttentionScore::kLeaky) == SCORE_LEAKY &&
              static_cast<uint32_t>(AttentionScore::kDistance) == SCORE_DISTANCE &&
              static_cast<uint32_t>(AttentionCenter::kPredicted) == CENTER_PREDICTED);

/// Sizes of a checked problem.
struct Sizes {
  uint64_t rows, q_len, kv_rows, kv_len;
};

[[noreturn]] void refuse(const ProgramBuilder& builder, std::string problem, std::string remedy) {
  throw ShapeError(builder.path(), std::move(problem), std::move(remedy));
}

void check_columns(const ProgramBuilder& builder, const char* what, const HeadColumns& part,
                   uint64_t heads, uint64_t head_size) {
  if (part.tensor.shape.rank() != 3) {
    refuse(builder, fmt::format("{} has shape {}", what, part.tensor.shape.to_string()),
           "it must be (rows, length, columns)");
  }
  if (part.first + heads * head_size > part.tensor.shape.columns()) {
    refuse(builder,
           fmt::format("{} heads of {} from column {} pass the {} columns of {}", heads, head_size,
                       part.first, part.tensor.shape.columns(), what),
           "make the tensor wider or the heads smaller");
  }
}

/// Floats of the bias.
uint64_t bias_words(const AttentionOptions& options, const Sizes& sizes) {
  const uint32_t kind = static_cast<uint32_t>(options.bias);
  if (kind == BIAS_NONE) return 0;
  if (kind == BIAS_RELATIVE) return options.heads * (2 * uint64_t{options.bias_span} + 1);
  const uint64_t lines = ((kind & 1) != 0 ? sizes.rows : 1) * ((kind & 2) != 0 ? options.heads : 1);
  return lines * sizes.q_len * sizes.kv_len;
}

void check_control(const ProgramBuilder& builder, const AttentionControl& control,
                   const AttentionOptions& options, const Sizes& sizes) {
  if (control.tensor.type != DataType::kU32) refuse(builder, "control is not u32", "");
  const uint64_t words = control.tensor.shape.elements();
  const auto check_range = [&](const char* what, int64_t offset, uint64_t count) {
    if (offset < 0 || offset + count <= words) return;
    refuse(builder,
           fmt::format("{} at word {} need {} words, control has {}", what, offset, count, words),
           "make the control tensor longer");
  };
  const uint64_t counts = (sizes.kv_rows - 1) * control.key_count_stride + 1;
  check_range("key counts", control.key_counts, counts);
  check_range("ancestry", control.ancestry, sizes.rows * sizes.kv_len);
  check_range("the head mask", control.head_mask, options.heads);
  check_range("the bias", control.bias, bias_words(options, sizes));
  check_range("the pattern", control.pattern, options.pattern.query_blocks + uint64_t{1});
  check_range("global tokens", control.globals, divide_up(sizes.kv_len, 32));
  check_range("the score vector", control.score_vector,
              uint64_t{options.heads} * options.head_size);
  check_range("the centers", control.centers, sizes.rows * sizes.q_len * options.heads);
  check_range("split_counters", control.split_counters, sizes.kv_rows * options.heads);
  if (control.ancestry >= 0 && options.rows_per_kv != 1) {
    refuse(builder, fmt::format("ancestry with {} rows per row of keys", options.rows_per_kv),
           "with ancestry every row has keys of its own");
  }
}

Sizes check_problem(const ProgramBuilder& builder, const HeadColumns& q, const HeadColumns& k,
                    const AttentionOptions& options) {
  if (options.heads == 0 || options.kv_heads == 0 || options.heads % options.kv_heads != 0) {
    refuse(builder,
           fmt::format("{} query heads over {} key heads", options.heads, options.kv_heads),
           "key heads must divide query heads");
  }
  if (options.head_size == 0 || options.head_size > MAX_HEAD_SIZE) {
    refuse(builder, fmt::format("head size {}", options.head_size),
           fmt::format("it must be 1 to {}", MAX_HEAD_SIZE));
  }
  check_columns(builder, "q", q, options.heads, options.head_size);
  check_columns(builder, "k", k, options.kv_heads, options.head_size);
  Sizes sizes{q.tensor.shape[0], q.tensor.shape[1], k.tensor.shape[0], k.tensor.shape[1]};
  if (sizes.rows == 0 || sizes.q_len == 0) {
    refuse(
        builder,
        fmt::format("q is {} and k is {}", q.tensor.shape.to_string(), k.tensor.shape.to_string()),
        "there must be a query");
  }
  if (options.rows_per_kv == 0 || sizes.rows != sizes.kv_rows * options.rows_per_kv) {
    refuse(builder,
           fmt::format("q has {} rows and k has {}, with {} rows of q per row of k", sizes.rows,
                       sizes.kv_rows, options.rows_per_kv),
           "the product must agree");
  }
  if (options.query_offset.value_or(0) > static_cast<int32_t>(kMaxWindow) ||
      options.query_offset.value_or(0) < -static_cast<int32_t>(kMaxWindow)) {
    refuse(builder, fmt::format("queries stand at {}", *options.query_offset),
           "give a position below 2^29");
  }
  if (!(options.soft_cap >= 0)) {
    refuse(builder, fmt::format("scores are capped at {}", options.soft_cap),
           "give a positive cap, or 0 for none");
  }
  const auto need = [&](bool asked, const char* what, int32_t AttentionControl::*offset) {
    if (!asked || (options.control && (*options.control).*offset >= 0)) return;
    refuse(builder, fmt::format("{} is asked for and control holds none", what),
           "give its offset in control");
  };
  need(options.bias != AttentionBias::kNone, "a bias", &AttentionControl::bias);
  need(options.pattern.block_queries != 0, "a pattern", &AttentionControl::pattern);
  need(options.global_tokens, "a set of global tokens", &AttentionControl::globals);
  need(options.center == AttentionCenter::kPredicted, "a predicted center",
       &AttentionControl::centers);
  need(options.score == AttentionScore::kAdditive || options.score == AttentionScore::kLeaky,
       "an additive score", &AttentionControl::score_vector);
  if (options.pattern.block_queries != 0 &&
      (options.pattern.block_keys == 0 || options.pattern.query_blocks == 0)) {
    refuse(builder, "a pattern has blocks of no keys or no blocks", "give all of KeyPattern");
  }
  if (options.hard && options.center != AttentionCenter::kNone) {
    refuse(builder, "hard attention has a center", "a single key has no neighbours to fall off to");
  }
  if (!(options.center_sigma >= 0 && options.center_reach >= 0)) {
    refuse(builder, "local attention has a negative width", "give positive ones, or 0 for none");
  }
  if (options.control) check_control(builder, *options.control, options, sizes);
  return sizes;
}

/// Whether no tile of `tile` queries of the list reaches into two blocks of a pattern.
bool whole_tiles(const AttentionOptions& options, uint64_t tile) {
  const uint64_t block = options.pattern.block_queries;
  if (block == 0) return true;
  const uint64_t pack = options.heads / options.kv_heads;
  return block * pack % tile == 0 && options.rows_per_kv == 1 && options.query_offset &&
         *options.query_offset % static_cast<int64_t>(block) == 0;
}

/// Facts by the largest power of two that divides every size, stride and offset.
ShapeFacts facts_of(std::initializer_list<uint64_t> extents, const AttentionOptions& options,
                    const Sizes& sizes) {
  uint64_t divisor = 0;
  for (uint64_t extent : extents) divisor = std::gcd(divisor, extent);
  ShapeFacts facts = kAnyShape;
  if (divisor % 4 == 0) facts |= kDepthMultipleOf4;
  if (divisor % 8 == 0) facts |= kDepthMultipleOf8;
  if (divisor % 16 == 0) facts |= kDepthMultipleOf16;
  if (divisor % 32 == 0) facts |= kDepthMultipleOf32;
  if (divisor % 64 == 0) facts |= kDepthMultipleOf64;
  const uint32_t widest = std::max(options.head_size, options.value_size);
  if (widest <= 64) facts |= kHeadSizeAtMost64;
  if (widest <= 128) facts |= kHeadSizeAtMost128;
  // Rows that share keys, and the heads of a group, are served like more queries of one row.
  const uint64_t positions = sizes.q_len * options.rows_per_kv;
  const uint64_t queries = positions * (options.heads / options.kv_heads);
  if (positions >= 8) facts |= kManyPositions;
  if (queries == 1) facts |= kOneQuery;
  if (queries >= 8) facts |= kManyQueries;
  if (queries >= 32) facts |= kQueriesAtLeast32;
  if (!options.control || options.control->ancestry < 0) facts |= kNoAncestry;
  if (options.pattern.block_queries == 0 && !options.global_tokens) facts |= kContiguousKeys;
  const bool plain = (facts & kContiguousKeys) && options.score == AttentionScore::kDot &&
                     !options.hard && options.center == AttentionCenter::kNone;
  const uint64_t key_heads = sizes.kv_rows * options.kv_heads;
  if (plain && positions == 1 && key_heads <= 64 && sizes.kv_len >= 2 * MIN_KEYS_PER_SPLIT &&
      options.control && options.control->split_counters >= 0) {
    facts |= kSplitKeys;
  }
  if (key_heads <= 4) facts |= kFewKeyHeads;
  if (whole_tiles(options, 16)) facts |= kWholeTiles;
  return facts;
}

shader::AttentionParams params_of(const HeadColumns& q, const HeadColumns& k, const HeadColumns& v,
                                  const AttentionOptions& options, const Sizes& sizes,
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
  params.key_counts = options.control ? options.control->key_counts : -1;
  params.key_count_stride = options.control ? options.control->key_count_stride : 0;
  params.key_count_extra = options.control ? options.control->key_count_extra : 0;
  params.ancestry = options.control ? options.control->ancestry : -1;
  params.head_mask = options.control ? options.control->head_mask : -1;
  params.scale = options.scale;
  params.query_offset = options.query_offset.value_or(QUERY_OFFSET_FROM_COUNT);
  params.window = std::min(options.window, kMaxWindow);
  params.soft_cap = options.soft_cap;
  params.bias = options.control ? options.control->bias : -1;
  params.pattern = options.control ? options.control->pattern : -1;
  params.globals = options.control ? options.control->globals : -1;
  params.score_vector = options.control ? options.control->score_vector : -1;
  params.centers = options.control ? options.control->centers : -1;
  return params;
}

/// Queries of a workgroup of the row that serves every kind: those of a tile look at the same list
/// of keys.
uint32_t baseline_queries(const AttentionOptions& options) {
  return whole_tiles(options, 4) ? 4 : 1;
}

std::vector<SpecializationConstant> constants_of(const AttentionOptions& options,
                                                 const Sizes& sizes, uint32_t pack) {
  // The one query of a decode step is the last of its keys: it sees them all.
  const bool causal = options.causal && (sizes.q_len > 1 || options.query_offset);
  const bool ancestry = options.control && options.control->ancestry >= 0;
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
          {CONSTANT_GLOBALS, options.global_tokens ? 1u : 0u}};
}

/// The rows of one node: q and result by rows_per_kv rows for each row of keys.
Tensor slice(const Tensor& tensor, uint64_t lines_per_row, uint64_t first, uint64_t count,
             uint64_t all) {
  if (first == 0 && count == all) return tensor;
  return tensor.row_slice(first * lines_per_row, count * lines_per_row);
}

/// Queries that a workgroup of a row serves: the row's tile constant where it has one.
uint32_t queries_per_group(const Kernel& kernel, const AttentionOptions& options) {
  return kernel.find(RowConstant::TILE_Q).value_or(baseline_queries(options));
}

/// What masks that are known when a program is built leave of a row's keys: keys that some query
/// sees, and pairs of query and key. What control counts at run time is not known, so all keys
/// count.
struct Kept {
  uint64_t keys = 0, pairs = 0;
};

Kept kept_keys(const AttentionOptions& options, const Sizes& sizes) {
  const int64_t kv_len = static_cast<int64_t>(sizes.kv_len),
                q_len = static_cast<int64_t>(sizes.q_len);
  const int64_t offset = options.query_offset.value_or(static_cast<int32_t>(kv_len - q_len));
  Kept kept;
  int64_t reached = 0;  // keys before it are counted
  for (int64_t i = 0; i < q_len; ++i) {
    int64_t first = 0, end = kv_len;
    if (options.window != 0) {
      first = std::max<int64_t>(offset + i - options.window + 1, 0);
      end = std::min<int64_t>(end, offset + i + options.window);
    }
    if (options.causal) end = std::min<int64_t>(end, offset + i + 1);
    if (end <= first) continue;
    const auto reach = static_cast<int64_t>(2 * options.center_reach +
                                            1);  // no more keys around a predicted center
    kept.pairs += options.center_reach != 0 ? std::min(end - first, reach) : end - first;
    kept.keys += std::max<int64_t>(end - std::max(first, reached), 0);
    reached = std::max(reached, end);
  }
  return kept;
}

/// Operations on a column of a query and a key. A tanh counts as those of
/// shaders/include/tanh.glsl, its division as one.
uint64_t score_operations(AttentionScore score) {
  constexpr uint64_t kTanh = 19;
  switch (score) {
    case AttentionScore::kDot: return 2;
    case AttentionScore::kAdditive: return 3 + kTanh;
    case AttentionScore::kLeaky:
      return 5;  // a sum, its multiple, the choice of one, the product with v, its sum
    case AttentionScore::kDistance: return 3;
  }
  return 0;
}

struct NodeTensors {
  const Tensor &q, &kv, &result;
  std::optional<Tensor> partials = {};  // of rows that split the keys
};

/// Workgroups that take the keys of one tile of queries together: enough for the device, each with
/// keys enough.
uint32_t splits_of(const Kernel& kernel, uint64_t tiles, uint64_t keys) {
  const uint64_t wanted = kernel.constant(RowConstant::WORKGROUPS);
  const uint64_t most = std::min<uint64_t>(keys / MIN_KEYS_PER_SPLIT, 64);
  return static_cast<uint32_t>(
      std::clamp<uint64_t>(wanted / std::max<uint64_t>(tiles, 1), 1, most));
}

/// One node, or several over rows of keys where a tensor does not fit a descriptor.
/// tiles: workgroups over the list of queries of a row of keys, `pack` heads each. row_work: of one
/// row of keys.
void add_nodes(ProgramBuilder& builder, const Kernel& kernel, const NodeTensors& tensors,
               shader::AttentionParams params, const AttentionOptions& options, const Sizes& sizes,
               uint64_t tiles, uint32_t pack, const Work& row_work) {
  const uint64_t all = sizes.kv_rows;
  const bool ancestry = params.ancestry >= 0;
  // With ancestry a row may read any row of the cache, which therefore stays whole.
  const uint64_t count = rows_per_node(builder, kernel, all,
                                       {tensors.q.bytes() / all, tensors.result.bytes() / all,
                                        ancestry ? 0 : tensors.kv.bytes() / all});
  for (uint64_t first = 0; first < all; first += count) {
    const uint64_t rows = std::min(count, all - first);
    const auto part = [&](const Tensor& tensor) {
      return slice(tensor, tensor.shape.rows() / all, first, rows, all);
    };
    const Tensor q = part(tensors.q);
    Node node;
    node.kernel = &kernel;
    // Every binding needs a buffer; without control nothing reads the fourth.
    node.buffers = {{q, Access::kRead},
                    {ancestry ? tensors.kv : part(tensors.kv), Access::kRead},
                    {part(tensors.result), Access::kWrite},
                    {options.control ? options.control->tensor : q, Access::kRead}};
    params.first_kv_row = static_cast<uint32_t>(first);
    node.set_params(params);
    node.constants = constants_of(options, sizes, pack);
    uint32_t splits = 1;
    if (tensors.partials) {
      splits = static_cast<uint32_t>(tensors.partials->shape[2]);
      node.buffers[3].access = Access::kReadWrite;  // split_counters
      node.buffers.push_back({*tensors.partials, Access::kReadWrite});
      node.constants.push_back({CONSTANT_NUM_SPLITS, splits});
      node.constants.push_back(
          {CONSTANT_SPLIT_COUNTERS, static_cast<uint32_t>(options.control->split_counters)});
    }
    node.groups = {static_cast<uint32_t>(tiles) * splits, options.heads / pack,
                   static_cast<uint32_t>(rows)};
    node.work.bytes = rows * row_work.bytes;
    node.work.flops = rows * row_work.flops;
    builder.add(std::move(node));
  }
}

}  // namespace

bool same_storage(const Tensor& a, const Tensor& b) {
  return a.arena_id == b.arena_id && a.byte_offset == b.byte_offset && a.type == b.type &&
         a.shape == b.shape && a.view.buffer == b.view.buffer && a.view.offset == b.view.offset;
}

Tensor attention(ProgramBuilder& builder, const HeadColumns& q, const HeadColumns& k,
                 const HeadColumns& v, const AttentionOptions& options) {
  const Sizes sizes = check_problem(builder, q, k, options);
  if (options.value_size == 0 || options.value_size > MAX_HEAD_SIZE) {
    refuse(builder, fmt::format("value size {}", options.value_size),
           fmt::format("it must be 1 to {}", MAX_HEAD_SIZE));
  }
  check_columns(builder, "v", v, options.kv_heads, options.value_size);
  if (!same_storage(k.tensor, v.tensor)) {
    refuse(builder, "keys and values are different tensors", "make them columns of one tensor");
  }
  if (sizes.kv_len == 0) return attention_of_nothing(builder, q.tensor, options);

  Problem problem{Op::kAttention, {q.tensor.type, k.tensor.type}};
  problem.facts = facts_of({options.head_size, options.value_size, q.tensor.shape.columns(),
                            q.first, k.tensor.shape.columns(), k.first, v.first},
                           options, sizes);
  const Kernel& kernel = builder.select(problem);

  const uint64_t columns = uint64_t{options.heads} * options.value_size;
  const Tensor result = builder.activation({sizes.rows, sizes.q_len, columns}, q.tensor.type);
  // Heads that share keys share a pass over them.
  const uint32_t pack = options.heads / options.kv_heads;
  const shader::AttentionParams params = params_of(q, k, v, options, sizes, pack);
  const uint64_t positions = sizes.q_len * options.rows_per_kv;
  const Kept kept = kept_keys(options, sizes);
  // Hard attention takes one value per query and head, and adds none up.
  const uint64_t values = kept.keys * options.kv_heads;
  const uint64_t values_read = options.hard ? std::min(values, positions * options.heads) : values;
  const uint64_t operations = score_operations(options.score) * options.head_size +
                              (options.hard ? 0 : uint64_t{2} * options.value_size);
  Work work;
  work.bytes = positions * options.heads * (options.head_size + options.value_size) *
                   size_of(q.tensor.type) +
               row_bytes(k.tensor.type, k.tensor.shape.columns()) *
                   (values * options.head_size + values_read * options.value_size) /
                   k.tensor.shape.columns();
  work.flops = kept.pairs * options.rows_per_kv * options.heads * operations;
  NodeTensors tensors{q.tensor, k.tensor, result};
  const uint64_t tiles = divide_up(params.queries, queries_per_group(kernel, options));
  if (kernel.shape & kSplitKeys) {
    const uint32_t splits =
        splits_of(kernel, sizes.kv_rows * options.kv_heads * tiles, sizes.kv_len);
    // Sums, and behind them a maximum and a total: whole fours.
    const uint64_t floats = options.value_size + 4;
    tensors.partials =
        builder.activation({sizes.rows, options.heads, splits, floats}, DataType::kF32);
  }
  add_nodes(builder, kernel, tensors, params, options, sizes, tiles, pack, work);
  return result;
}

// Vulkan binds no empty buffer, and kernels read a first key before they leave it out.
Tensor attention_of_nothing(ProgramBuilder& builder, const Tensor& q,
                            const AttentionOptions& options) {
  return fill(builder, {q.shape[0], q.shape[1], uint64_t{options.heads} * options.value_size}, 0,
              q.type);
}

Tensor attention_map(ProgramBuilder& builder, const HeadColumns& q, const HeadColumns& k,
                     const AttentionOptions& options) {
  const Sizes sizes = check_problem(builder, q, k, options);
  if (sizes.kv_len == 0) refuse(builder, "a map over no keys has no elements", "leave it out");
  Problem problem{Op::kAttentionMap, {q.tensor.type, k.tensor.type}};
  problem.facts = facts_of(
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

void append_cache(ProgramBuilder& builder, const Tensor& x, const Tensor& cache,
                  const AppendCacheOptions& options) {
  if (x.shape.rank() != 3 || cache.shape.rank() != 3 || x.shape[0] != cache.shape[0]) {
    refuse(builder,
           fmt::format("x has shape {} and the cache {}", x.shape.to_string(),
                       cache.shape.to_string()),
           "they must be (rows, length, columns) and (rows, context, columns)");
  }
  if (options.first_column + cache.shape.columns() > x.shape.columns()) {
    refuse(builder,
           fmt::format("{} columns of the cache from column {} pass the {} columns of x",
                       cache.shape.columns(), options.first_column, x.shape.columns()),
           "make x wider or the cache narrower");
  }
  if (options.control.type != DataType::kU32 ||
      options.position_offset + (x.shape[0] - 1) * options.position_stride >=
          options.control.shape.elements()) {
    refuse(
        builder,
        fmt::format("the position stands at word {} of a {} tensor of {}", options.position_offset,
                    name_of(options.control.type), options.control.shape.elements()),
        "give a u32 tensor that holds it");
  }
  const bool in_fours =
      cache.shape.columns() % 4 == 0 && x.shape.columns() % 4 == 0 && options.first_column % 4 == 0;
  const Kernel& kernel = builder.select(
      {Op::kAppendCache, {x.type, cache.type}, in_fours ? kColumnsMultipleOf4 : kAnyShape});

  const uint64_t rows = x.shape[0], q_len = x.shape[1], columns = cache.shape.columns();
  const uint64_t context = cache.shape[1];
  const uint64_t x_bytes = q_len * x.shape.columns() * size_of(x.type);
  const uint64_t cache_row_bytes = row_bytes(cache.type, columns),
                 cache_bytes = context * cache_row_bytes;
  const uint64_t count = rows_per_node(builder, kernel, rows, {x_bytes, cache_bytes});
  // What one invocation writes: four columns, a block, or a word; a row of an odd number of halves
  // may begin and end inside a word.
  uint64_t words = cache.type == DataType::kF16 ? columns / 2 + 1 : columns;
  if (kernel.shape & kColumnsMultipleOf4) words = columns / 4;
  if (is_block_type(cache.type)) words = columns / block_elements(cache.type);
  for (uint64_t first = 0; first < rows; first += count) {
    const uint64_t these = std::min(count, rows - first);
    Node node;
    node.kernel = &kernel;
    node.buffers = {{slice(x, q_len, first, these, rows), Access::kRead},
                    {slice(cache, context, first, these, rows), Access::kReadWrite},
                    {options.control, Access::kRead}};
    node.set_params(shader::AppendCacheParams{
        static_cast<uint32_t>(q_len), static_cast<uint32_t>(context),
        static_cast<uint32_t>(columns), static_cast<uint32_t>(x.shape.columns()),
        options.first_column,
        options.position_offset + static_cast<uint32_t>(first) * options.position_stride,
        options.position_stride});
    node.groups = {
        static_cast<uint32_t>(divide_up(words, local_size(kernel, builder.capabilities()))),
        static_cast<uint32_t>(q_len), static_cast<uint32_t>(these)};
    node.work.bytes = these * q_len * (columns * size_of(x.type) + cache_row_bytes);
    builder.add(std::move(node));
  }
}

}  // namespace mulciber
