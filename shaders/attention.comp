// Every kind of attention on any device: one workgroup per TILE queries of a head, online softmax
// over blocks of keys.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "interface.h"
#include "attention.h"
#ifdef WIDE_HEADS
#include "latent_attention.h"
#endif
#define BLOCK_SPARSE
#include "attention_common.glsl"
#include "attention_general.glsl"

#ifdef WIDE_HEADS
// Its shared memory is 2 x 1024 floats, under 9 KiB.
ROW_CONSTANT(TILE_Q, 2);
const uint TILE = TILE_Q, kQueries = 2, kColumns = MAX_LATENT_SIZE;
#else
layout(constant_id = CONSTANT_TILE) const uint TILE = 4;

// A query tile of 4 x 256 floats and three tiles of scores stay under 6 KiB of shared memory.
const uint kQueries = 4, kColumns = MAX_HEAD_SIZE;  // limits of a tile
#endif
const uint kKeys = 32;
// Columns of the values per invocation.
const uint COLUMNS = (VALUE_SIZE + LOCAL_SIZE - 1) / LOCAL_SIZE;

shared float q_tile[kQueries * kColumns];
shared float scores[kQueries * kKeys];
shared float weights[kQueries * kKeys];
shared float factors[kQueries * kKeys];  // factors of the weights, for local attention
shared float maxima[kQueries];

void main() {
  const uint first_query = gl_WorkGroupID.x * TILE;
  const uint kv_row = gl_WorkGroupID.z;
  const uint k_column = params.k_first + key_head() * HEAD_SIZE;
  const uint v_column = params.v_first + key_head() * VALUE_SIZE;
  const uint lane = gl_LocalInvocationIndex;
  const int keys = key_count(kv_row);

  for (uint i = lane; i < TILE * HEAD_SIZE; i += LOCAL_SIZE) {
    uint query = min(first_query + i / HEAD_SIZE, params.queries - 1u);
    q_tile[i] = q_at(q_element(kv_row, query) + i % HEAD_SIZE);
  }

  // Invocations share the value columns; each keeps its own copy of the running statistics.
  float sums[kQueries * COLUMNS];
  float maximum[kQueries];
  float total[kQueries];
  for (uint i = 0; i < kQueries; ++i) {
    maximum[i] = kMasked;
    total[i] = 0;
    for (uint c = 0; c < COLUMNS; ++c) sums[i * COLUMNS + c] = 0;
  }
  const uint last_query = min(first_query + TILE, params.queries) - 1u;
  // Queries of several rows may share a tile, so the furthest-seeing one is not always the last.
  uvec2 seen = uvec2(params.kv_len, 0);
  for (uint query = first_query; query <= last_query; ++query) {
    uvec2 visible = reachable_keys(kv_row, query, keys);
    seen = uvec2(min(seen.x, visible.x), max(seen.y, visible.y));
  }

  for (KeyRun run = first_run(first_query, keys, seen); run.key < run.end;
       run = step_run(run, kKeys, seen)) {
    barrier();
    for (uint i = lane; i < TILE * kKeys; i += LOCAL_SIZE) {
      uint query = min(first_query + i / kKeys, params.queries - 1u), key = run.key + i % kKeys;
      int position = position_of(query, keys);
      float score = kMasked;
      if (key < run.end && within(key, reachable_keys(kv_row, query, keys)) &&
          global_allows(position, key)) {
        uint base = key_base(kv_row, key);
        uint q_base = i / kKeys * HEAD_SIZE, head = query_head(query);
        score = 0;
        // Unrolled loads would take software drivers seconds to compile.
        [[dont_unroll]] for (uint d = 0; d < HEAD_SIZE; ++d) {
          score += score_term(q_tile[q_base + d], kv_at(base, k_column + d), score_weight(head, d));
        }
        score = max(score_of(score, kv_row, query, position, key), kMasked);
        if (CENTER != CENTER_NONE) factors[i] = center_factor(center_of(kv_row, query, keys), key);
      }
      scores[i] = score;
    }
    barrier();
    for (uint i = lane; i < TILE * kKeys; i += LOCAL_SIZE) {
      uint row = i / kKeys, best = 0;
      float block_maximum = kMasked;
      [[dont_unroll]] for (uint j = 0; j < kKeys; ++j) {
        float score = scores[row * kKeys + j];
        if (score > block_maximum) best = j;
        block_maximum = max(block_maximum, score);
      }
      // All invocations have the same running maximum, but learn of it at different times.
      float before = kMasked;
      for (uint r = 0; r < kQueries; ++r) {
        if (r == row) before = maximum[r];
      }
      float next = max(block_maximum, before);
      if (HARD != 0u) {
        weights[i] = block_maximum > before && i % kKeys == best ? 1.0 : 0.0;
      } else {
        weights[i] = scores[i] > kMasked ? exp(scores[i] - next) : 0.0;
      }
      if (i % kKeys == 0u) maxima[row] = next;
    }
    barrier();
    const uint count = min(kKeys, run.end - run.key);
    for (uint i = 0; i < TILE; ++i) {
      float correction =
          HARD != 0u ? (maxima[i] > maximum[i] ? 0.0 : 1.0) : exp(maximum[i] - maxima[i]);
      maximum[i] = maxima[i];
      total[i] *= correction;
      for (uint c = 0; c < COLUMNS; ++c) sums[i * COLUMNS + c] *= correction;
      for (uint j = 0; j < count; ++j) total[i] += weights[i * kKeys + j];
    }
    for (uint j = 0; j < count; ++j) {
      uint base = key_base(kv_row, run.key + j);
      for (uint c = 0; c < COLUMNS; ++c) {
        uint column = c * LOCAL_SIZE + lane;
        if (column >= VALUE_SIZE) break;
        float value = kv_at(base, v_column + column);
        for (uint i = 0; i < TILE; ++i) {
          // A weight of zero hides masked values, even NaN.
          float weight = weights[i * kKeys + j];
          if (weight == 0.0) continue;
          if (CENTER != CENTER_NONE) weight *= factors[i * kKeys + j];
          sums[i * COLUMNS + c] += weight * value;
        }
      }
    }
  }

  for (uint i = 0; i < TILE; ++i) {
    uint query = first_query + i;
    if (query >= params.queries) break;
    uint head = query_head(query);
    float inverse =
        total[i] > 0 ? head_factor(head) / with_sink(head, maximum[i], total[i], 1.0) : 0.0;
    for (uint c = 0; c < COLUMNS; ++c) {
      uint column = c * LOCAL_SIZE + lane;
      if (column >= VALUE_SIZE) break;
      store_result(result_element(kv_row, query) + column, sums[i * COLUMNS + c] * inverse);
    }
  }
}
