// Attention of one position for hardware: a workgroup takes TILE_Q heads of a group and one split
// of their keys (attention_split_keys.glsl), so a key is read once for all these heads. A few lanes
// of a subgroup read a key (or value) together, so that loads of its columns coalesce. With APPENDS
// the position's key and value come from q and go into the cache (attention_append.glsl).
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "interface.h"
#include "attention.h"
#define READ_VECTORS
#define SPLIT_KEYS
#include "attention_common.glsl"
#include "attention_split_keys.glsl"

ROW_CONSTANT(TILE_Q, 4);  // at most 4
ROW_CONSTANT(UNROLL, 4);  // at most the number of lanes per key

// A block has one key per invocation of the workgroup, at most 128; a subgroup has at least 4
// lanes.
const uint kMaxKeys = 128, kMaxQueries = 4, kMaxSubgroups = 32;
shared uint bases[kMaxKeys];
shared float weights[kMaxKeys * kMaxQueries];      // first scores, then weights
shared float maxima[kMaxSubgroups * kMaxQueries];  // maxima of subgroups, finally their totals
shared vec4 partial[kMaxKeys];
shared bool last;
#ifdef APPENDS
#include "attention_append.glsl"
#endif

const uint HEAD = HEAD_SIZE / 4;
const uint VALUE = VALUE_SIZE / 4;
const uint LANES = SUBGROUP_SIZE < 16 ? SUBGROUP_SIZE : 16;  // per key
const uint GROUPS = LOCAL_SIZE / LANES;
const uint HEAD_STEPS = (HEAD + LANES - 1) / LANES;
const uint VALUE_STEPS = (VALUE + LANES - 1) / LANES;
// Number of keys, and of values, that are loaded together: one after the other, each load would
// wait for memory. Narrow subgroups have few registers, and their loads already take several.
const uint AT_ONCE = SUBGROUP_SIZE < 16 ? 1 : UNROLL;
const uint KEYS_AT_ONCE = HEAD_STEPS > 2 ? 1 : AT_ONCE;
const uint VALUES_AT_ONCE = VALUE_STEPS > 2 ? 1 : AT_ONCE;

// Rows with and without append are different programs, which a compiler may contract differently.
float add_products(float sum, vec4 a, vec4 b) {
  precise float added = fma(a.w, b.w, fma(a.z, b.z, fma(a.y, b.y, fma(a.x, b.x, sum))));
  return added;
}
vec4 add_weighted(vec4 sum, float weight, vec4 value) {
  precise vec4 added = fma(vec4(weight), value, sum);
  return added;
}

void main() {
  const uint first_query = QUERY_TILE * TILE_Q;
  const uint kv_row = gl_WorkGroupID.z;
  const uint k_column = params.k_first + key_head() * HEAD_SIZE;
  const uint v_column = params.v_first + key_head() * VALUE_SIZE;
  const int keys = key_count(kv_row);
  // With one position, all heads see the same keys.
  const Split split = split_of(visible_keys(first_query, keys), LOCAL_SIZE);
  if (split.index >= split.count) return;
  const uint end = split.keys.y;
  const int position = position_of(first_query, keys);
#ifdef APPENDS
  // The last split ends with the position's key, unless the cache has no room for it.
  const uint newest_key = AT(
      control, uint(params.key_counts) + (params.first_kv_row + kv_row) * params.key_count_stride);
  const bool holds = newest_key < params.kv_len && split.index == split.count - 1;
  const uint cached_end = holds ? newest_key : end;
  stage_heads(kv_row, first_query, newest_key, holds);
  if (holds) keep_newest(kv_row, newest_key, k_column, v_column, QUERY_TILE == 0);
#else
  const uint cached_end = end;
#endif
  const uint thread = gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID;
  const uint lane = thread % LANES, group = thread / LANES;

  // The last tile repeats the last query.
  vec4 part_of_query[TILE_Q * HEAD_STEPS];
  [[unroll]] for (uint i = 0; i < TILE_Q; ++i) {
#ifndef APPENDS
    uint q_base = q_element(kv_row, min(first_query + i, params.queries - 1));
#endif
    [[unroll]] for (uint c = 0; c < HEAD_STEPS; ++c) {
      uint quad = c * LANES + lane;
#ifdef APPENDS
      part_of_query[i * HEAD_STEPS + c] = quad < HEAD ? staged_query(i, quad) : vec4(0);
#else
      part_of_query[i * HEAD_STEPS + c] = quad < HEAD ? q_at(q_base + quad * 4) : vec4(0);
#endif
    }
  }
  vec4 sums[TILE_Q * VALUE_STEPS];
  float maximum[TILE_Q];
  float total[TILE_Q];  // over this invocation's keys
  [[unroll]] for (uint i = 0; i < TILE_Q; ++i) {
    [[unroll]] for (uint c = 0; c < VALUE_STEPS; ++c) sums[i * VALUE_STEPS + c] = vec4(0);
    maximum[i] = kMasked;
    total[i] = 0;
  }

  uint first_key = split.keys.x;
  do {
    barrier();
    bases[thread] = key_base(kv_row, min(first_key + thread, params.kv_len - 1));
    barrier();
    for (uint k = 0; k < LANES; k += KEYS_AT_ONCE) {
      vec4 key_quads[KEYS_AT_ONCE * HEAD_STEPS];
      [[unroll]] for (uint u = 0; u < KEYS_AT_ONCE; ++u) {
        uint at = (k + u) * GROUPS + group;
        [[unroll]] for (uint c = 0; c < HEAD_STEPS; ++c) {
          uint quad = c * LANES + lane;
          key_quads[u * HEAD_STEPS + c] = first_key + at < cached_end && quad < HEAD
                                              ? kv_at(bases[at], k_column + quad * 4)
                                              : vec4(0);
        }
      }
      [[unroll]] for (uint u = 0; u < KEYS_AT_ONCE; ++u) {
        [[unroll]] for (uint i = 0; i < TILE_Q; ++i) {
          float score = 0;
          [[unroll]] for (uint c = 0; c < HEAD_STEPS; ++c) score =
              add_products(score, part_of_query[i * HEAD_STEPS + c], key_quads[u * HEAD_STEPS + c]);
          [[unroll]] for (uint step = 1; step < LANES; step *= 2) score +=
              subgroupShuffleXor(score, step);
          if (lane == 0) weights[i * kMaxKeys + (k + u) * GROUPS + group] = score;
        }
      }
    }
#ifdef APPENDS
    // Every group of lanes multiplies the position's key; the group that owns it keeps the scores.
    const bool meets = holds && newest_key - first_key < LOCAL_SIZE;
    const uint newest_at = newest_key - first_key;
    const bool takes = meets && newest_at % GROUPS == group;
    if (meets) {
      float score[TILE_Q];
      [[unroll]] for (uint i = 0; i < TILE_Q; ++i) score[i] = 0;
      [[unroll]] for (uint c = 0; c < HEAD_STEPS; ++c) {
        uint quad = c * LANES + lane;
        if (quad < HEAD) {
          [[unroll]] for (uint i = 0; i < TILE_Q; ++i) score[i] =
              add_products(score[i], part_of_query[i * HEAD_STEPS + c], newest[quad]);
        }
      }
      [[unroll]] for (uint i = 0; i < TILE_Q; ++i) {
        [[unroll]] for (uint step = 1; step < LANES; step *= 2) score[i] +=
            subgroupShuffleXor(score[i], step);
        if (takes && lane == 0) weights[i * kMaxKeys + newest_at] = score[i];
      }
    }
#endif
    barrier();

    const bool visible = first_key + thread < end;
    float score[TILE_Q];
    [[unroll]] for (uint i = 0; i < TILE_Q; ++i) {
      uint query = min(first_query + i, params.queries - 1);
      score[i] = kMasked;
      if (visible)
        score[i] = max(
            score_of(weights[i * kMaxKeys + thread], kv_row, query, position, first_key + thread),
            kMasked);
      float top = subgroupMax(score[i]);
      if (subgroupElect()) maxima[gl_SubgroupID * kMaxQueries + i] = top;
    }
    barrier();
    // No loop inside an unrolled one: compilers would leave both, and arrays in memory.
    float nexts[TILE_Q];
    [[unroll]] for (uint i = 0; i < TILE_Q; ++i) nexts[i] = maximum[i];
    for (uint s = 0; s < gl_NumSubgroups; ++s) {
      [[unroll]] for (uint i = 0; i < TILE_Q; ++i) nexts[i] =
          max(nexts[i], maxima[s * kMaxQueries + i]);
    }
    [[unroll]] for (uint i = 0; i < TILE_Q; ++i) {
      float next = nexts[i];
      float correction = exp(maximum[i] - next);
      float weight = score[i] > kMasked ? exp(score[i] - next) : 0.0;
      maximum[i] = next;
      precise float next_total = fma(total[i], correction, weight);
      total[i] = next_total;
      weights[i * kMaxKeys + thread] = weight;
      [[unroll]] for (uint c = 0; c < VALUE_STEPS; ++c) sums[i * VALUE_STEPS + c] *= correction;
    }
    barrier();

    for (uint k = 0; k < LANES; k += VALUES_AT_ONCE) {
      vec4 value_quads[VALUES_AT_ONCE * VALUE_STEPS];
      [[unroll]] for (uint u = 0; u < VALUES_AT_ONCE; ++u) {
        uint at = (k + u) * GROUPS + group;
        [[unroll]] for (uint c = 0; c < VALUE_STEPS; ++c) {
          uint quad = c * LANES + lane;
          value_quads[u * VALUE_STEPS + c] = first_key + at < cached_end && quad < VALUE
                                                 ? kv_at(bases[at], v_column + quad * 4)
                                                 : vec4(0);
        }
      }
      [[unroll]] for (uint u = 0; u < VALUES_AT_ONCE; ++u) {
        uint at = (k + u) * GROUPS + group;
        if (first_key + at < cached_end) {
          [[unroll]] for (uint i = 0; i < TILE_Q; ++i) {
            float weight = weights[i * kMaxKeys + at];
            // A masked value may be NaN.
            if (BIAS < BIAS_MASK || weight != 0) {
              [[unroll]] for (uint c = 0; c < VALUE_STEPS; ++c) sums[i * VALUE_STEPS + c] =
                  add_weighted(sums[i * VALUE_STEPS + c], weight, value_quads[u * VALUE_STEPS + c]);
            }
          }
        }
      }
    }
#ifdef APPENDS
    // The position's key is the last key of its group.
    if (takes) {
      [[unroll]] for (uint c = 0; c < VALUE_STEPS; ++c) {
        uint quad = c * LANES + lane;
        if (quad < VALUE) {
          [[unroll]] for (uint i = 0; i < TILE_Q; ++i) {
            float weight = weights[i * kMaxKeys + newest_at];
            if (BIAS < BIAS_MASK || weight != 0)
              sums[i * VALUE_STEPS + c] =
                  add_weighted(sums[i * VALUE_STEPS + c], weight, newest[kNewestQuads + quad]);
          }
        }
      }
    }
#endif
    first_key += LOCAL_SIZE;
  } while (first_key < end);

  // The barrier before the last tile's values ensures that all have read its maxima.
  [[unroll]] for (uint i = 0; i < TILE_Q; ++i) {
    float subgroup_total = subgroupAdd(total[i]);
    if (subgroupElect()) maxima[gl_SubgroupID * kMaxQueries + i] = subgroup_total;
    total[i] = 0;
  }
  barrier();
  for (uint s = 0; s < gl_NumSubgroups; ++s) {
    [[unroll]] for (uint i = 0; i < TILE_Q; ++i) total[i] += maxima[s * kMaxQueries + i];
  }

  [[unroll]] for (uint i = 0; i < TILE_Q; ++i) {
    const uint query = first_query + i;
    const float all = total[i];
    const uint head = query_head(min(query, params.queries - 1));
    const float inverse = all > 0 ? head_factor(head) / with_sink(head, maximum[i], all, 1.0) : 0.0;
    const uint at = partial_at(kv_row, query, split.index);
    [[unroll]] for (uint c = 0; c < VALUE_STEPS; ++c) {
      barrier();
      partial[thread] = sums[i * VALUE_STEPS + c];
      barrier();
      uint quad = c * LANES + lane;
      if (group == 0 && quad < VALUE && query < params.queries) {
        vec4 sum = vec4(0);
        [[unroll]] for (uint g = 0; g < GROUPS; ++g) sum += partial[g * LANES + lane];
        if (split.count == 1) {
          store_result(result_element(kv_row, query) + quad * 4, sum * inverse);
        } else {
          AT(partials, at + quad) = sum;
        }
      }
    }
    if (split.count > 1 && thread == 0 && query < params.queries)
      AT(partials, at + VALUE) = vec4(maximum[i], all, 0, 0);
  }
  if (split.count == 1) return;

  memoryBarrierBuffer();
  barrier();
  if (thread == 0)
    last =
        atomicAdd(AT(split_counters, split_counter_at(kv_row, first_query)), 1) + 1 == split.count;
  barrier();
  if (!last) return;
  memoryBarrierBuffer();
  if (thread == 0) AT(split_counters, split_counter_at(kv_row, first_query)) = 0;
  for (uint e = thread; e < TILE_Q * VALUE; e += LOCAL_SIZE) {
    uint query = first_query + e / VALUE, quad = e % VALUE;
    if (query >= params.queries) break;
    const Combined all = combined(kv_row, query, split.count, quad);
    const uint head = query_head(query);
    store_result(result_element(kv_row, query) + quad * 4,
                 all.total > 0
                     ? all.sums * (head_factor(head) / with_sink(head, all.maximum, all.total, 1.0))
                     : vec4(0));
  }
}
