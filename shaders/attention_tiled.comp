// Attention for hardware: a workgroup takes TILE_Q queries of a head and loops over blocks of keys,
// which it stages in shared memory; online softmax (Dao et al. 2022, arXiv:2205.14135), sums in
// f32. It uses no subgroup operations, so subgroups may have any size.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "interface.h"
#include "attention.h"
#define READ_VECTORS
#include "attention_common.glsl"
#include "attention_general.glsl"

ROW_CONSTANT(TILE_Q, 32);  // at most 32, and LOCAL_SIZE = 4 x TILE_Q

// HEAD_QUADS, a define of the row, bounds the head size in fours: the queries stay in shared
// memory. Keys and values pass in pieces of 64 columns. Shared memory is 21.5 KiB with heads of 64
// and 29.5 KiB with 128, both below the 32 KiB that most hardware offers.
const uint kMaxQueries = 32;
const uint kKeys = 32;
const uint kPiece = 16;         // columns of a piece, in fours
const uint kLine = kPiece + 1;  // skewed against bank conflicts, like the other lines
const uint kQueryLine = HEAD_QUADS + 1;
const uint kScoreLine = kKeys + 1;
shared vec4 query_tile[kMaxQueries * kQueryLine];
shared vec4 tile[kKeys * kLine];                // keys, then values
shared float scores[kMaxQueries * kScoreLine];  // scores, then weights
shared float corrections[kMaxQueries];

const uint HEAD = HEAD_SIZE / 4;
const uint VALUE = VALUE_SIZE / 4;
const uint PIECES = (VALUE + kPiece - 1) / kPiece;
const uint QUERIES = TILE_Q * kPiece / LOCAL_SIZE;  // queries per invocation in products
const uint THREADS_PER_ROW = LOCAL_SIZE / TILE_Q;   // invocations that share a row of scores

// Loads columns [first_quad, first_quad + kPiece) of the block's keys or values, zeros outside.
void load_tile(uint kv_row, uint first_key, uint seen, uint column, uint first_quad, uint quads) {
  for (uint i = gl_LocalInvocationIndex; i < kKeys * kPiece; i += LOCAL_SIZE) {
    uint key = first_key + i / kPiece;
    uint quad = first_quad + i % kPiece;
    vec4 value = vec4(0);
    if (key < seen && quad < quads) value = kv_at(key_base(kv_row, key), column + quad * 4);
    tile[i / kPiece * kLine + i % kPiece] = value;
  }
}

void main() {
  const uint first_query = gl_WorkGroupID.x * TILE_Q;
  const uint kv_row = gl_WorkGroupID.z;
  const uint k_column = params.k_first + key_head() * HEAD_SIZE;
  const uint v_column = params.v_first + key_head() * VALUE_SIZE;
  const int keys = key_count(kv_row);
  const uint thread = gl_LocalInvocationIndex;
  // In products: a column of fours (or two keys) for some queries. In the softmax: a share of one
  // query's keys.
  const uint lane = thread % kPiece, query0 = thread / kPiece * QUERIES;
  const uint row = thread / THREADS_PER_ROW, row_thread = thread % THREADS_PER_ROW;
  const uint row_query = min(first_query + row, params.queries - 1);
  const uvec2 row_visible = reachable_keys(kv_row, row_query, keys);
  const float center = CENTER == CENTER_NONE ? 0.0 : center_of(kv_row, row_query, keys);

  // The last tile repeats the last query.
  for (uint i = thread; i < TILE_Q * HEAD; i += LOCAL_SIZE) {
    uint query = min(first_query + i / HEAD, params.queries - 1);
    query_tile[i / HEAD * kQueryLine + i % HEAD] = q_at(q_element(kv_row, query) + i % HEAD * 4);
  }
  // Queries of several rows may share a tile, so the furthest-seeing one is not always the last.
  uvec2 range = reachable_keys(kv_row, first_query, keys);
  if (CAUSAL != 0 || WINDOWED != 0 || CENTER == CENTER_PREDICTED) {
    for (uint i = 1; i < TILE_Q; ++i) {
      uvec2 visible = reachable_keys(kv_row, min(first_query + i, params.queries - 1), keys);
      range = uvec2(min(range.x, visible.x), max(range.y, visible.y));
    }
  }
  const uint seen = range.y;
  // Positions of the queries whose scores this invocation computes.
  int position[QUERIES];
  [[unroll]] for (uint i = 0; i < QUERIES; ++i) {
    position[i] = position_of(min(first_query + query0 + i, params.queries - 1), keys);
  }

  vec4 sums[QUERIES * PIECES];
  [[unroll]] for (uint i = 0; i < QUERIES * PIECES; ++i) sums[i] = vec4(0);
  float maximum = kMasked;
  float total = 0;  // over this invocation's share

  uint first_key = range.x;
  do {
    // Scores of keys `lane` and `lane + 16` for every query of the invocation.
    float score[QUERIES * 2];
    [[unroll]] for (uint i = 0; i < QUERIES * 2; ++i) score[i] = 0;
    for (uint quad0 = 0; quad0 < HEAD; quad0 += kPiece) {
      barrier();
      load_tile(kv_row, first_key, seen, k_column, quad0, HEAD);
      barrier();
      uint quads = min(kPiece, HEAD - quad0);
      for (uint d = 0; d < quads; ++d) {
        vec4 key0 = tile[lane * kLine + d], key1 = tile[(lane + kPiece) * kLine + d];
        [[unroll]] for (uint i = 0; i < QUERIES; ++i) {
          vec4 query = query_tile[(query0 + i) * kQueryLine + quad0 + d];
          uint n = min(first_query + query0 + i, params.queries - 1);
          vec4 weights = WEIGHTED ? score_weights(query_head(n), (quad0 + d) * 4) : vec4(0);
          score[2 * i] += score_terms(query, key0, weights);
          score[2 * i + 1] += score_terms(query, key1, weights);
        }
      }
    }
    [[unroll]] for (uint i = 0; i < QUERIES; ++i) {
      uint n = min(first_query + query0 + i, params.queries - 1), key = first_key + lane;
      uint at = (query0 + i) * kScoreLine + lane;
      // The index of the bias stays among existing keys.
      uint last = params.kv_len - 1;
      scores[at] = score_of(score[2 * i], kv_row, n, position[i], min(key, last));
      scores[at + kPiece] =
          score_of(score[2 * i + 1], kv_row, n, position[i], min(key + kPiece, last));
    }
    barrier();

    // All invocations that share a row read all of it: cheaper than exchanging maxima.
    float next = maximum;
    uint best = kKeys;
    for (uint j = 0; j < kKeys; ++j) {
      if (!within(first_key + j, row_visible)) continue;
      if (HARD != 0 && scores[row * kScoreLine + j] > next) best = j;
      next = max(next, scores[row * kScoreLine + j]);
    }
    barrier();
    float correction = exp(maximum - next);
    if (HARD != 0) correction = best < kKeys ? 0.0 : 1.0;
    maximum = next;
    total *= correction;
    for (uint j = row_thread; j < kKeys; j += THREADS_PER_ROW) {
      uint at = row * kScoreLine + j;
      bool visible = within(first_key + j, row_visible) && scores[at] > kMasked;
      float weight = visible ? exp(scores[at] - next) : 0.0;
      if (HARD != 0) weight = j == best ? 1.0 : 0.0;
      total += weight;
      if (CENTER != CENTER_NONE) weight *= center_factor(center, first_key + j);
      scores[at] = weight;
    }
    if (row_thread == 0) corrections[row] = correction;

    [[unroll]] for (uint piece = 0; piece < PIECES; ++piece) {
      barrier();
      load_tile(kv_row, first_key, seen, v_column, piece * kPiece, VALUE);
      barrier();
      [[unroll]] for (uint i = 0; i < QUERIES; ++i) {
        sums[i * PIECES + piece] *= corrections[query0 + i];
      }
      for (uint j = 0; j < kKeys; ++j) {
        vec4 value = tile[j * kLine + lane];
        [[unroll]] for (uint i = 0; i < QUERIES; ++i) {
          float weight = scores[(query0 + i) * kScoreLine + j];
          // A key that only other queries see may hold NaN; a weight of zero hides it.
          if (UNEQUAL || HARD != 0) {
            sums[i * PIECES + piece] += weight != 0 ? weight * value : vec4(0);
          } else {
            sums[i * PIECES + piece] += weight * value;
          }
        }
      }
    }
    first_key += kKeys;
  } while (first_key < seen);

  barrier();
  // The sink adds one weight; for a row that sees nothing it makes the division one of zero.
  if (SINKS != 0 && row_thread == 0)
    total = with_sink(query_head(min(first_query + row, params.queries - 1)), maximum, total, 1.0);
  scores[row * kScoreLine + row_thread] = total;
  barrier();
  [[unroll]] for (uint i = 0; i < QUERIES; ++i) {
    float all = 0;
    for (uint p = 0; p < THREADS_PER_ROW; ++p) all += scores[(query0 + i) * kScoreLine + p];
    uint query = first_query + query0 + i;
    float inverse = all > 0 ? head_factor(query_head(query)) / all : 0.0;
    [[unroll]] for (uint piece = 0; piece < PIECES; ++piece) {
      uint quad = piece * kPiece + lane;
      if (query < params.queries && quad < VALUE) {
        store_result(result_element(kv_row, query) + quad * 4, sums[i * PIECES + piece] * inverse);
      }
    }
  }
}
