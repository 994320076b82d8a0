// Attention of few queries for hardware: a workgroup per query of a head, which splits the keys
// among its subgroups. A few lanes of a subgroup read a key (or value) together, so that loads of
// its columns coalesce.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "interface.h"
#include "attention.h"
#define READ_VECTORS
#include "attention_common.glsl"
#include "attention_general.glsl"
#define SUBGROUP_ADD
#include "reduce.glsl"

// A block has one key per invocation of the workgroup, at most 128.
const uint kMaxKeys = 128;
shared uint bases[kMaxKeys];
shared float weights[kMaxKeys];  // first scores, then weights
shared vec4 partial[kMaxKeys];

const uint HEAD = HEAD_SIZE / 4;
const uint VALUE = VALUE_SIZE / 4;
const uint LANES = SUBGROUP_SIZE < 16 ? SUBGROUP_SIZE : 16;  // per key
const uint GROUPS = LOCAL_SIZE / LANES;
const uint HEAD_STEPS = (HEAD + LANES - 1) / LANES;
const uint VALUE_STEPS = (VALUE + LANES - 1) / LANES;

void main() {
  const uint query = gl_WorkGroupID.x;
  const uint kv_row = gl_WorkGroupID.z;
  const uint k_column = params.k_first + key_head() * HEAD_SIZE;
  const uint v_column = params.v_first + key_head() * VALUE_SIZE;
  const int keys = key_count(kv_row);
  const uvec2 range = reachable_keys(kv_row, query, keys);
  const uint seen = range.y;
  const int position = position_of(query, keys);
  const float center = CENTER == CENTER_NONE ? 0.0 : center_of(kv_row, query, keys);
  const uint thread = gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID;
  const uint lane = thread % LANES, group = thread / LANES;
  const uint q_base = q_element(kv_row, query);

  vec4 part_of_query[HEAD_STEPS], part_of_weights[HEAD_STEPS];
  [[unroll]] for (uint c = 0; c < HEAD_STEPS; ++c) {
    uint quad = c * LANES + lane;
    part_of_query[c] = quad < HEAD ? q_at(q_base + quad * 4) : vec4(0);
    part_of_weights[c] =
        WEIGHTED && quad < HEAD ? score_weights(query_head(query), quad * 4) : vec4(0);
  }
  vec4 sums[VALUE_STEPS];
  [[unroll]] for (uint c = 0; c < VALUE_STEPS; ++c) sums[c] = vec4(0);
  float maximum = kMasked;
  float total = 0;  // over this invocation's keys

  uint first_key = range.x;
  do {
    barrier();
    bases[thread] = key_base(kv_row, min(first_key + thread, params.kv_len - 1));
    barrier();
    for (uint k = 0; k < LANES; ++k) {
      uint at = k * GROUPS + group;
      float score = 0;
      [[unroll]] for (uint c = 0; c < HEAD_STEPS; ++c) {
        uint quad = c * LANES + lane;
        if (first_key + at < seen && quad < HEAD) {
          score += score_terms(part_of_query[c], kv_at(bases[at], k_column + quad * 4),
                               part_of_weights[c]);
        }
      }
      for (uint step = 1; step < LANES; step *= 2) score += subgroupShuffleXor(score, step);
      if (lane == 0) weights[at] = score;
    }
    barrier();

    bool visible = first_key + thread < seen;
    float score = kMasked;
    if (visible)
      score = max(score_of(weights[thread], kv_row, query, position, first_key + thread), kMasked);
    float next = max(maximum, workgroup_max(score));
    float correction = exp(maximum - next);
    float weight = score > kMasked ? exp(score - next) : 0.0;
    if (HARD != 0) {
      // Takes the first of the largest scores, if it exceeds those of earlier blocks. Keys below
      // 2^24 are exact.
      const float key = float(first_key + thread);
      correction = next > maximum ? 0.0 : 1.0;
      weight = -workgroup_max(score == next && score > maximum ? -key : kMasked) == key ? 1.0 : 0.0;
    }
    maximum = next;
    total = total * correction + weight;
    if (CENTER != CENTER_NONE) weight *= center_factor(center, first_key + thread);
    weights[thread] = weight;
    barrier();

    [[unroll]] for (uint c = 0; c < VALUE_STEPS; ++c) sums[c] *= correction;
    for (uint k = 0; k < LANES; ++k) {
      uint at = k * GROUPS + group;
      [[unroll]] for (uint c = 0; c < VALUE_STEPS; ++c) {
        uint quad = c * LANES + lane;
        if (first_key + at < seen && quad < VALUE &&
            ((BIAS < BIAS_MASK && HARD == 0) || weights[at] != 0)) {
          sums[c] += weights[at] * kv_at(bases[at], v_column + quad * 4);
        }
      }
    }
    first_key += LOCAL_SIZE;
  } while (first_key < seen);

  const float all = workgroup_add(total);
  const uint head = query_head(query);
  const float inverse = all > 0 ? head_factor(head) / with_sink(head, maximum, all, 1.0) : 0.0;
  [[unroll]] for (uint c = 0; c < VALUE_STEPS; ++c) {
    barrier();
    partial[thread] = sums[c];
    barrier();
    uint quad = c * LANES + lane;
    if (group == 0 && quad < VALUE) {
      vec4 sum = vec4(0);
      for (uint g = 0; g < GROUPS; ++g) sum += partial[g * LANES + lane];
      store_result(result_element(kv_row, query) + quad * 4, sum * inverse);
    }
  }
}
