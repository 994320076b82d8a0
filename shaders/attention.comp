// Attention for any device: one workgroup per 4 queries of a head, online softmax over blocks of keys.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "interface.h"
#include "attention.h"
#include "attention_common.glsl"

// A query tile of 4 x 256 floats and two score tiles stay under 6 KiB of shared memory.
const uint kQueries = 4;
const uint kKeys = 32;
const uint kMaxSize = 256;
const uint COLUMNS = (VALUE_SIZE + LOCAL_SIZE - 1) / LOCAL_SIZE;  // of the values, per invocation

shared float q_tile[kQueries * kMaxSize];
shared float scores[kQueries * kKeys];
shared float weights[kQueries * kKeys];
shared float maxima[kQueries];

void main() {
  const uint first_query = gl_WorkGroupID.x * kQueries;
  const uint kv_row = gl_WorkGroupID.z;
  const uint k_column = params.k_first + key_head() * HEAD_SIZE;
  const uint v_column = params.v_first + key_head() * VALUE_SIZE;
  const uint lane = gl_LocalInvocationIndex;
  const int keys = key_count(kv_row);

  for (uint i = lane; i < kQueries * HEAD_SIZE; i += LOCAL_SIZE) {
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
  const uint last_query = min(first_query + kQueries, params.queries) - 1u;
  // Queries of several rows may meet in a tile, so the furthest-seeing one is not always the last.
  uvec2 seen = uvec2(params.kv_len, 0);
  for (uint query = first_query; query <= last_query; ++query) {
    uvec2 visible = visible_keys(query, keys);
    seen = uvec2(min(seen.x, visible.x), max(seen.y, visible.y));
  }

  for (uint first_key = seen.x; first_key < seen.y; first_key += kKeys) {
    barrier();
    for (uint i = lane; i < kQueries * kKeys; i += LOCAL_SIZE) {
      uint query = first_query + i / kKeys;
      uint key = first_key + i % kKeys;
      float score = kMasked;
      if (within(key, visible_keys(query, keys))) {
        uint base = key_base(kv_row, key) + k_column;
        uint q_base = i / kKeys * HEAD_SIZE;
        score = 0;
        // Unrolled, its loads take software drivers seconds to compile.
        [[dont_unroll]] for (uint d = 0; d < HEAD_SIZE; ++d) score += q_tile[q_base + d] * kv_at(base + d);
        score = max(score_of(score, kv_row, query, position_of(query, keys), key), kMasked);
      }
      scores[i] = score;
    }
    barrier();
    for (uint i = lane; i < kQueries * kKeys; i += LOCAL_SIZE) {
      uint row = i / kKeys;
      float block_maximum = kMasked;
      [[dont_unroll]] for (uint j = 0; j < kKeys; ++j) block_maximum = max(block_maximum, scores[row * kKeys + j]);
      // The running maximum differs between invocations only in when they learn of it.
      float next = block_maximum;
      for (uint r = 0; r < kQueries; ++r) {
        if (r == row) next = max(next, maximum[r]);
      }
      weights[i] = scores[i] > kMasked ? exp(scores[i] - next) : 0.0;
      if (i % kKeys == 0u) maxima[row] = next;
    }
    barrier();
    const uint count = min(kKeys, seen.y - first_key);
    for (uint i = 0; i < kQueries; ++i) {
      float correction = exp(maximum[i] - maxima[i]);
      maximum[i] = maxima[i];
      total[i] *= correction;
      for (uint c = 0; c < COLUMNS; ++c) sums[i * COLUMNS + c] *= correction;
      for (uint j = 0; j < count; ++j) total[i] += weights[i * kKeys + j];
    }
    for (uint j = 0; j < count; ++j) {
      uint base = key_base(kv_row, first_key + j) + v_column;
      for (uint c = 0; c < COLUMNS; ++c) {
        uint column = c * LOCAL_SIZE + lane;
        if (column >= VALUE_SIZE) break;
        float value = kv_at(base + column);
        for (uint i = 0; i < kQueries; ++i) {
          // A weight of zero hides whatever stands in a masked place, NaN included.
          float weight = weights[i * kKeys + j];
          if (weight != 0.0) sums[i * COLUMNS + c] += weight * value;
        }
      }
    }
  }

  for (uint i = 0; i < kQueries; ++i) {
    uint query = first_query + i;
    if (query >= params.queries) break;
    float inverse = total[i] > 0 ? head_factor(query_head(query)) / total[i] : 0.0;
    for (uint c = 0; c < COLUMNS; ++c) {
      uint column = c * LOCAL_SIZE + lane;
      if (column >= VALUE_SIZE) break;
      store_result(result_element(kv_row, query) + column, sums[i * COLUMNS + c] * inverse);
    }
  }
}
