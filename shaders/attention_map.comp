// Attention probabilities for any device: one workgroup per query of a head. Scores are first
// stored in the result; the invocation that stored one turns it into a probability.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "interface.h"
#include "attention.h"
#define NO_RESULT
#define BLOCK_SPARSE
#include "attention_common.glsl"
#include "attention_general.glsl"

BUFFER(2, restrict, result, float)

const uint kMaxLocalSize = 128;
shared float maxima[kMaxLocalSize];
shared float totals[kMaxLocalSize];  // hard attention: the first key of the largest score

/// Whether the pattern lists a key for query n.
bool listed(uint n, int count, uint key) {
  if (PATTERN_QUERIES == 0u) return true;
  KeyRun run = first_run(n, count, uvec2(0u, params.kv_len));
  while (run.key < run.end && run.end <= key) run = next_run(run, uvec2(0u, params.kv_len));
  return run.key <= key && key < run.end;
}

void main() {
  const uint query = gl_WorkGroupID.x;
  const uint head = gl_WorkGroupID.y;
  const uint kv_row = gl_WorkGroupID.z;
  const uint lane = gl_LocalInvocationIndex;
  const int count = key_count(kv_row);
  const uvec2 keys = reachable_keys(kv_row, query, count);
  const int position = position_of(query, count);
  const float center = CENTER == CENTER_NONE ? 0.0 : center_of(kv_row, query, count);
  const uint k_column = params.k_first + head / params.group * HEAD_SIZE;
  const uint q_base = q_element(kv_row, query);
  const uint row = kv_row * (params.queries / params.q_len) + query / params.q_len;
  const uint result_base =
      ((row * query_heads() + head) * params.q_len + query % params.q_len) * params.kv_len;

  float maximum = kMasked;
  float total = 0;
  // Every invocation takes part in every step, and there is always a first step: lavapipe of Mesa
  // 26.1 crashes when no lane of a subgroup enters a loop that contains another loop with loads
  // from descriptors.
  uint first_key = keys.x / LOCAL_SIZE * LOCAL_SIZE;
  do {
    uint key = first_key + lane;
    uint base = key_base(kv_row, min(key, params.kv_len - 1u));
    float score = 0;
    // Unrolled loads would take software drivers seconds to compile.
#ifdef READ_VECTORS
    [[dont_unroll]] for (uint d = 0; d < HEAD_SIZE; d += 4u) {
      score += score_terms(q_at(q_base + d), kv_at(base, k_column + d), score_weights(head, d));
    }
#else
    [[dont_unroll]] for (uint d = 0; d < HEAD_SIZE; ++d) {
      score += score_term(q_at(q_base + d), kv_at(base, k_column + d), score_weight(head, d));
    }
#endif
    if (within(key, keys)) {
      score = max(score_of(score, kv_row, query, position, key), kMasked);
      if (!global_allows(position, key) || !listed(query, count, key)) score = kMasked;
      AT(result, result_base + key) = score;
      float next = max(maximum, score);
      if (HARD != 0u) {
        if (score > maximum) total = float(key);
      } else {
        total = total * exp(maximum - next) + (score > kMasked ? exp(score - next) : 0.0);
      }
      maximum = next;
    }
    first_key += LOCAL_SIZE;
  } while (first_key < keys.y);

  maxima[lane] = maximum;
  totals[lane] = total;
  for (uint half_size = LOCAL_SIZE / 2u; half_size > 0u; half_size /= 2u) {
    barrier();
    if (lane < half_size) {
      float other = maxima[lane + half_size];
      float next = max(maxima[lane], other);
      if (HARD != 0u) {
        float mine = totals[lane], theirs = totals[lane + half_size];
        totals[lane] =
            other > maxima[lane] ? theirs : (other < maxima[lane] ? mine : min(mine, theirs));
      } else {
        totals[lane] =
            totals[lane] * exp(maxima[lane] - next) + totals[lane + half_size] * exp(other - next);
      }
      maxima[lane] = next;
    }
  }
  barrier();
  maximum = maxima[0];
  total = with_sink(head, maximum, totals[0], 1.0);

  for (uint key = lane; key < params.kv_len; key += LOCAL_SIZE) {
    float probability = 0;
    if (within(key, keys) && AT(result, result_base + key) > kMasked) {
      if (HARD != 0u) {
        probability = float(key) == total ? 1.0 : 0.0;
      } else {
        probability = exp(AT(result, result_base + key) - maximum) / total;
      }
      if (CENTER != CENTER_NONE) probability *= center_factor(center, key);
    }
    AT(result, result_base + key) = probability;
  }
}
