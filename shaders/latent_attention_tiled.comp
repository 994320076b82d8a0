// Attention of many heads over one key per position, whose last columns are its value, for
// hardware: a workgroup takes TILE_Q queries, mostly heads of one position, and one split of their
// keys (attention_split_keys.glsl). A block of keys is staged in shared memory once, for scores and
// values. No subgroup operations, so subgroups may have any size.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "interface.h"
#include "attention.h"
#define READ_VECTORS
#define SPLIT_KEYS
#include "attention_common.glsl"
#include "attention_split_keys.glsl"

ROW_CONSTANT(TILE_Q, 16);  // 8 or 16; LOCAL_SIZE is 128

const uint HEAD = HEAD_SIZE / 4;
const uint VALUE = VALUE_SIZE / 4;  // at most one quad per invocation
// Queries of a tile see the same keys, unless it has heads of two positions.
const bool UNEQUAL = MASKED && PACK % TILE_Q != 0;

// For the scores an invocation multiplies some queries by four keys, along one slice of their
// columns: neighbours take neighbouring quads. A wider tile takes more registers, for its sums too.
const uint kKeys = 8;
const uint QUERIES = TILE_Q / 4;
const uint kPieces = 4 * kKeys / 4;
const uint SLICES = LOCAL_SIZE / kPieces;

// Shared memory is 28.8 KiB, below the 32 KiB that most hardware offers. Lines are skewed against
// bank conflicts.
const uint kMaxQueries = 16, kKeyLine = 640 / 4 + 1;
const uint kScoreLine = TILE_Q * kKeys + 1;
shared vec4 key_tile[kKeys * kKeyLine];
shared float slices[16 * (kMaxQueries * kKeys + 1)];
shared vec4 weights[kMaxQueries * kKeys / 4];  // first scores, then weights
shared float corrections[kMaxQueries];
shared bool last;

void main() {
  const uint thread = gl_LocalInvocationIndex;
  const uint first_query = QUERY_TILE * TILE_Q;
  const uint kv_row = gl_WorkGroupID.z;
  const int keys = key_count(kv_row);
  const uint value_first = (params.v_first - params.k_first) / 4;

  uvec2 range = visible_keys(first_query, keys);
  for (uint i = 1; i < TILE_Q && MASKED; ++i) {
    uvec2 visible = visible_keys(min(first_query + i, params.queries - 1), keys);
    range = uvec2(min(range.x, visible.x), max(range.y, visible.y));
  }
  const Split split = split_of(range, kKeys);
  if (split.index >= split.count) return;
  const uint end = split.keys.y;

  // In products: four queries, four keys, a slice. In the softmax: one query, one key.
  const uint slice = thread % SLICES, piece = thread / SLICES;
  const uint query0 = piece / (kKeys / 4) * QUERIES, key0 = piece % (kKeys / 4) * 4;
  const uint row = min(thread / kKeys, TILE_Q - 1), row_key = thread % kKeys;
  const bool scores_one = thread < TILE_Q * kKeys;
  const uvec2 row_visible = visible_keys(min(first_query + row, params.queries - 1), keys);
  uint q_base[QUERIES];
  [[unroll]] for (uint i = 0; i < QUERIES; ++i) {
    q_base[i] = q_element(kv_row, min(first_query + query0 + i, params.queries - 1));
  }

  vec4 sums[TILE_Q];  // this invocation's quad of the values
  [[unroll]] for (uint i = 0; i < TILE_Q; ++i) sums[i] = vec4(0);
  float maximum = kMasked;
  float total = 0;  // over this invocation's keys

  uint first_key = split.keys.x;
  do {
    barrier();
    for (uint i = thread; i < kKeys * HEAD; i += LOCAL_SIZE) {
      uint key = first_key + i / HEAD, quad = i % HEAD;
      vec4 value = vec4(0);
      if (key < end) value = kv_at(key_base(kv_row, key), params.k_first + quad * 4);
      key_tile[i / HEAD * kKeyLine + quad] = value;
    }
    barrier();
    float score[QUERIES * 4];
    [[unroll]] for (uint i = 0; i < QUERIES * 4; ++i) score[i] = 0;
    for (uint quad = slice; quad < HEAD; quad += SLICES) {
      vec4 query[QUERIES];
      [[unroll]] for (uint i = 0; i < QUERIES; ++i) query[i] = q_at(q_base[i] + quad * 4);
      [[unroll]] for (uint j = 0; j < 4; ++j) {
        vec4 key = key_tile[(key0 + j) * kKeyLine + quad];
        [[unroll]] for (uint i = 0; i < QUERIES; ++i) score[i * 4 + j] += dot(query[i], key);
      }
    }
    [[unroll]] for (uint i = 0; i < QUERIES; ++i) {
      [[unroll]] for (uint j = 0; j < 4; ++j) {
        slices[slice * kScoreLine + (query0 + i) * kKeys + key0 + j] = score[i * 4 + j];
      }
    }
    barrier();

    const uint key = first_key + row_key;
    const bool visible = scores_one && key >= row_visible.x && key < min(row_visible.y, end);
    float scaled = kMasked;
    if (visible) {
      float sum = 0;
      for (uint s = 0; s < SLICES; ++s) sum += slices[s * kScoreLine + thread];
      scaled = sum * params.scale;
    }
    if (scores_one) weights[thread / 4][thread % 4] = scaled;
    barrier();
    // All invocations that share a row read all of it: cheaper than exchanging maxima.
    float next = maximum;
    [[unroll]] for (uint j = 0; j < kKeys / 4; ++j) {
      vec4 some = weights[row * (kKeys / 4) + j];
      next = max(next, max(max(some.x, some.y), max(some.z, some.w)));
    }
    barrier();
    const float correction = exp(maximum - next);
    const float weight = visible ? exp(scaled - next) : 0.0;
    maximum = next;
    total = total * correction + weight;
    if (scores_one) weights[thread / 4][thread % 4] = weight;
    if (scores_one && row_key == 0) corrections[row] = correction;
    barrier();

    if (thread < VALUE) {
      [[unroll]] for (uint i = 0; i < TILE_Q; ++i) sums[i] *= corrections[i];
      // Unrolled, the values of all keys would wait in registers.
      [[dont_unroll]] for (uint quad = 0; quad < kKeys / 4; ++quad) {
        vec4 value[4];
        [[unroll]] for (uint j = 0; j < 4; ++j) {
          value[j] = key_tile[(quad * 4 + j) * kKeyLine + value_first + thread];
        }
        [[unroll]] for (uint i = 0; i < TILE_Q; ++i) {
          vec4 factors = weights[i * (kKeys / 4) + quad];
          [[unroll]] for (uint j = 0; j < 4; ++j) {
            // A key that only other queries see may hold NaN; a weight of zero hides it.
            if (UNEQUAL) {
              sums[i] += factors[j] != 0 ? factors[j] * value[j] : vec4(0);
            } else {
              sums[i] += factors[j] * value[j];
            }
          }
        }
      }
    }
    first_key += kKeys;
  } while (first_key < end);

  // The barrier after the last scores ensures that all are done with the slices.
  if (scores_one) {
    slices[thread] = total;
    if (row_key == 0) slices[TILE_Q * kKeys + row] = maximum;
  }
  barrier();
  if (thread < TILE_Q) {
    float all = 0;
    for (uint j = 0; j < kKeys; ++j) all += slices[thread * kKeys + j];
    slices[TILE_Q * (kKeys + 1) + thread] = all;
  }
  barrier();
  [[unroll]] for (uint i = 0; i < TILE_Q; ++i) {
    const float all = slices[TILE_Q * (kKeys + 1) + i];
    const uint query = first_query + i;
    if (query < params.queries) {
      const uint at = partial_at(kv_row, query, split.index);
      if (thread < VALUE) {
        if (split.count == 1) {
          const float inverse = all > 0 ? head_factor(query_head(query)) / all : 0.0;
          store_result(result_element(kv_row, query) + thread * 4, sums[i] * inverse);
        } else {
          AT(partials, at + thread) = sums[i];
        }
      }
      if (split.count > 1 && thread == 0)
        AT(partials, at + VALUE) = vec4(slices[TILE_Q * kKeys + i], all, 0, 0);
    }
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
    store_result(result_element(kv_row, query) + quad * 4,
                 all.total > 0 ? all.sums * (head_factor(query_head(query)) / all.total) : vec4(0));
  }
}
