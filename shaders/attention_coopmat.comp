// Attention on matrix units: products of f16 operands, sums and softmax in f32, online softmax (Dao
// 2023, arXiv:2307.08691). A workgroup takes TILE_Q queries, each subgroup FRAGMENT_M of them, with
// sums in registers; keys and values pass through shared memory in blocks. Scores are stored there
// as well, because softmax needs rows and only the driver knows which lane holds which element;
// only lanes of the same subgroup read them. f32 queries are rounded to f16, and so are weights.
// Rows with PLAIN_FRAGMENTS run the same code without matrix units, for the conformance suite
// (include/fragments.glsl). Where tiles are few, several workgroups share the keys of one (flash
// decoding), and attention_combine combines their partial sums.
#version 450
#extension GL_GOOGLE_include_directive : require
#ifndef PLAIN_FRAGMENTS
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#endif
#include "interface.h"
#include "attention.h"
#define READ_VECTORS
#include "attention_common.glsl"

// The row defines HEAD_EIGHTS, which bounds the head size, KEYS, the keys per block, and
// SHARED_QUERIES where queries stay in shared memory rather than in registers. Shared memory holds
// blocks of keys and of values, a line of scores for each query with a spare unit, and for each
// query a factor and its range of keys: 27.5 KiB with heads up to 128, 23 KiB with 256, 19.3 KiB
// with 64 and queries.
#define MOST_QUERIES 64
#define LINE (HEAD_EIGHTS + 1)
#define SCORE_LINE (KEYS / 4 + 1)
#define VALUES_AT (KEYS * LINE)
#define SCORES_AT (2 * KEYS * LINE)
#define FACTORS_AT (SCORES_AT + MOST_QUERIES * SCORE_LINE)
#define QUERIES_AT (FACTORS_AT + MOST_QUERIES / 4)
#ifdef SHARED_QUERIES
#define SHARED_EIGHTS (QUERIES_AT + MOST_QUERIES * LINE)
#else
#define SHARED_EIGHTS QUERIES_AT
#endif
#include "fragments.glsl"

layout(constant_id = CONSTANT_KEY_PARTS) const uint KEY_PARTS = 1;
ROW_CONSTANT(TILE_Q, 64);  // FRAGMENT_M x the subgroups of a workgroup, up to MOST_QUERIES

shared uint tile_first, tile_end;    // range of keys that any query of the tile sees
shared uvec2 visible[MOST_QUERIES];  // range of each query
// One bit for each key whose value is not finite, for even and odd blocks.
shared uint spoiled[2];

#ifdef ACTIVATION_F16
BUFFER(0, readonly, wide_q, uvec4)
uvec4 q_eight(uint element) { return AT(wide_q, element / 8); }
#else
uvec4 q_eight(uint element) { return pack_eight(q_at(element), q_at(element + 4)); }
#endif

#ifdef WEIGHT_F16
BUFFER(1, readonly, wide_kv, uvec4)
uvec4 kv_halves(uint base, uint column) { return AT(wide_kv, (base + column) / 8); }
#else
uvec4 kv_halves(uint base, uint column) {
  vec4 low, high;
  kv_eight(base, column, low, high);
  // All eight share a scale; if it is not finite, they must not be clamped to numbers.
  bool finite = (floatBitsToUint(low.x) & 0x7f800000u) != 0x7f800000u;
  return finite ? pack_eight(low, high) : uvec4(0x7e007e00u);
}
#endif

/// Whether any of eight halves is not finite: an exponent of ones carries into the sign.
bool spoils(uvec4 eight) {
  uvec4 carried = (eight & 0x7fff7fffu) + 0x04000400u;
  return ((carried.x | carried.y | carried.z | carried.w) & 0x80008000u) != 0u;
}

BUFFER(2, writeonly, partials, vec4)
/// First element of this workgroup's partial sums for a query.
uint partial_at(uint kv_row, uint n) {
  uint line = result_element(kv_row, n) / VALUE_SIZE;
  return (line * KEY_PARTS + gl_WorkGroupID.x % KEY_PARTS) * (VALUE_SIZE / 4 + 1);
}

const uint HEAD = HEAD_SIZE / 8;
const uint VALUE = VALUE_SIZE / 8;
const uint KEY_LOADS = (KEYS * HEAD + LOCAL_SIZE - 1) / LOCAL_SIZE;  // per invocation
const uint VALUE_LOADS = (KEYS * VALUE + LOCAL_SIZE - 1) / LOCAL_SIZE;

// In the softmax several lanes share a row, or a lane has several rows. A share is whole eights.
const uint MOST_ROW_LANES = KEYS / 8 < 4 ? KEYS / 8 : 4;
const uint ROW_LANES = LANES >= FRAGMENT_M * MOST_ROW_LANES ? MOST_ROW_LANES
                       : LANES >= FRAGMENT_M                ? LANES / FRAGMENT_M
                                                            : 1;
const uint LANE_ROWS = LANES >= FRAGMENT_M ? 1 : FRAGMENT_M / LANES;
const uint ROW_STEP = LANES / ROW_LANES;  // from one row of a lane to the next
const uint SHARE = KEYS / ROW_LANES;      // keys of a lane in each of its rows

// Number of fours of a result fragment that a lane stores.
const uint RESULT_FOURS = (FRAGMENT_M * FRAGMENT_N / 4 + LANES - 1) / LANES;

// The largest weight is this rather than 1, so that small weights stay within f16's range.
const float kLargestWeight = 16384.0;

void main() {
  const uint first_query = gl_WorkGroupID.x / KEY_PARTS * TILE_Q;
  const uint kv_row = gl_WorkGroupID.z;
  const uint k_column = params.k_first + key_head() * HEAD_SIZE;
  const uint v_column = params.v_first + key_head() * VALUE_SIZE;
  const int count = key_count(kv_row);
  const uint thread = gl_LocalInvocationIndex;
  const uint own_query = SUBGROUP * FRAGMENT_M;  // the subgroup's first query in the tile
  const uint own_scores = SCORES_AT + own_query * SCORE_LINE;
  const uint own_factors = FACTORS_AT + own_query / 4;

  // Tiles of keys that no query of the tile sees are skipped. The last tile repeats the last query.
  if (thread == 0) {
    tile_first = 0xffffffffu;
    tile_end = 0;
    spoiled[0] = 0;
    spoiled[1] = 0;
  }
  barrier();
  for (uint i = thread; i < TILE_Q; i += LOCAL_SIZE) {
    visible[i] = visible_keys(min(first_query + i, params.queries - 1), count);
    atomicMin(tile_first, visible[i].x);
    atomicMax(tile_end, visible[i].y);
  }

  // Queries become fragments once, through the memory that keys and values use later; where
  // registers are few, they become fragments again for every block.
#ifdef SHARED_QUERIES
  for (uint i = thread; i < TILE_Q * HEAD; i += LOCAL_SIZE) {
    uint query = min(first_query + i / HEAD, params.queries - 1);
    uvec4 eight = q_eight(q_element(kv_row, query) + i % HEAD * 8);
    operands[QUERIES_AT + i / HEAD * LINE + i % HEAD] = eight;
  }
  barrier();
#define QUERIES_TIMES(D, B, SUM)                                                 \
  {                                                                              \
    FRAGMENT_A queries;                                                          \
    LOAD_A(queries, QUERIES_AT + own_query * LINE + D * (FRAGMENT_K / 8), LINE); \
    MULTIPLY_ADD(queries, B, SUM);                                               \
  }
#else
  FRAGMENT_A queries[HEAD_SIZE / FRAGMENT_K];
  for (uint first = 0; first < TILE_Q; first += 2 * KEYS) {
    barrier();
    for (uint i = thread; i < min(TILE_Q - first, 2 * KEYS) * HEAD; i += LOCAL_SIZE) {
      uint query = min(first_query + first + i / HEAD, params.queries - 1);
      operands[i / HEAD * LINE + i % HEAD] = q_eight(q_element(kv_row, query) + i % HEAD * 8);
    }
    barrier();
    if (own_query >= first && own_query < first + 2 * KEYS) {
      FRAGMENT_LOOP for (uint d = 0; d < HEAD_SIZE / FRAGMENT_K; ++d) {
        LOAD_A(queries[d], (own_query - first) * LINE + d * (FRAGMENT_K / 8), LINE);
      }
    }
  }
#define QUERIES_TIMES(D, B, SUM) MULTIPLY_ADD(queries[D], B, SUM)
#endif

  // The rows whose softmax this lane shares.
  const uint row_lane = LANE % ROW_LANES, first_row = LANE / ROW_LANES;
  int position[LANE_ROWS];
  float maximum[LANE_ROWS], total[LANE_ROWS];
  FRAGMENT_LOOP for (uint i = 0; i < LANE_ROWS; ++i) {
    uint n = min(first_query + own_query + first_row + i * ROW_STEP, params.queries - 1);
    position[i] = position_of(n, count);
    maximum[i] = kMasked;
    total[i] = 0.0;
  }
  FRAGMENT_SUM sums[VALUE_SIZE / FRAGMENT_N];
  FRAGMENT_LOOP for (uint j = 0; j < VALUE_SIZE / FRAGMENT_N; ++j) sums[j] = ZERO_SUM;

  // Parts are whole blocks, except for the last.
  const uint keys_seen = max(tile_first, tile_end) - tile_first;
  const uint part = ((keys_seen + KEY_PARTS - 1) / KEY_PARTS + KEYS - 1) / KEYS * KEYS;
  const uint begin = KEY_PARTS > 1 ? tile_first + gl_WorkGroupID.x % KEY_PARTS * part : tile_first;
  const uint seen = KEY_PARTS > 1 ? min(begin + part, tile_end) : tile_end;
  // The next block is loaded into registers while the current one is processed. Past the seen keys
  // it is zeros, because memory may hold NaN there.
  uvec4 next_keys[KEY_LOADS], next_values[VALUE_LOADS];
#define LOAD_BLOCK(FIRST)                                                             \
  {                                                                                   \
    FRAGMENT_LOOP for (uint i = 0; i < KEY_LOADS; ++i) {                              \
      uint at = i * LOCAL_SIZE + thread, key = (FIRST) + at / HEAD;                   \
      next_keys[i] = uvec4(0);                                                        \
      if (at < KEYS * HEAD && key < seen)                                             \
        next_keys[i] = kv_halves(key_base(kv_row, key), k_column + at % HEAD * 8);    \
    }                                                                                 \
    FRAGMENT_LOOP for (uint i = 0; i < VALUE_LOADS; ++i) {                            \
      uint at = i * LOCAL_SIZE + thread, key = (FIRST) + at / VALUE;                  \
      next_values[i] = uvec4(0);                                                      \
      if (at < KEYS * VALUE && key < seen)                                            \
        next_values[i] = kv_halves(key_base(kv_row, key), v_column + at % VALUE * 8); \
    }                                                                                 \
  }
  LOAD_BLOCK(begin);
  for (uint first_key = begin; first_key < seen; first_key += KEYS) {
    const uint turn = first_key / KEYS % 2;
    barrier();
    FRAGMENT_LOOP for (uint i = 0; i < KEY_LOADS; ++i) {
      uint at = i * LOCAL_SIZE + thread;
      if (at < KEYS * HEAD) operands[at / HEAD * LINE + at % HEAD] = next_keys[i];
    }
    FRAGMENT_LOOP for (uint i = 0; i < VALUE_LOADS; ++i) {
      uint at = i * LOCAL_SIZE + thread;
      // In a matrix product a weight of zero does not hide a NaN of a key that only other queries
      // see.
      if (MASKED && spoils(next_values[i])) {
        next_values[i] = uvec4(0);
        atomicOr(spoiled[turn], 1u << at / VALUE);
      }
      if (at < KEYS * VALUE) operands[VALUES_AT + at / VALUE * LINE + at % VALUE] = next_values[i];
    }
    barrier();
    if (MASKED && thread == 0) spoiled[1 - turn] = 0;
    if (first_key + KEYS < seen) LOAD_BLOCK(first_key + KEYS);
    FRAGMENT_LOOP for (uint j = 0; j < KEYS / FRAGMENT_N; ++j) {
      FRAGMENT_SUM score = ZERO_SUM;
      FRAGMENT_LOOP for (uint d = 0; d < HEAD_SIZE / FRAGMENT_K; ++d) {
        FRAGMENT_B keys;
        LOAD_B_TRANSPOSED(keys, j * FRAGMENT_N * LINE + d * (FRAGMENT_K / 8), LINE);
        QUERIES_TIMES(d, keys, score);
      }
      STORE_SUM(score, own_scores + j * (FRAGMENT_N / 4), SCORE_LINE);
    }
    FRAGMENT_BARRIER();

    // Computes the scores of this lane's shares, and stores the largest of them behind the line for
    // the other lanes of the row. There may be more lanes than the rows need.
    float share[LANE_ROWS * SHARE];
    FRAGMENT_LOOP for (uint i = 0; i < LANE_ROWS; ++i) {
      uint row = first_row + i * ROW_STEP;
      if (row < FRAGMENT_M) {
        uint n = min(first_query + own_query + row, params.queries - 1);
        uint line = own_scores + row * SCORE_LINE;
        uvec2 seen_keys = visible[own_query + row];
        float largest = kMasked;
        FRAGMENT_LOOP for (uint four = 0; four < SHARE / 4; ++four) {
          vec4 scores = uintBitsToFloat(operands[line + row_lane * (SHARE / 4) + four]);
          FRAGMENT_LOOP for (uint e = 0; e < 4; ++e) {
            uint key = first_key + row_lane * SHARE + four * 4 + e;
            // The index of the bias stays among existing keys.
            float score = score_of(scores[e], kv_row, n, position[i], min(key, params.kv_len - 1));
            if (key < seen_keys.x || key >= seen_keys.y) score = kMasked;
            share[i * SHARE + four * 4 + e] = score;
            largest = max(largest, score);
          }
        }
        operands[line + KEYS / 4][row_lane] = floatBitsToUint(largest);
      }
    }
    FRAGMENT_BARRIER();

    // Weights overwrite the scores, at half their size.
    const uint own_spoiled = MASKED ? spoiled[turn] >> (row_lane * SHARE) : 0;
    FRAGMENT_LOOP for (uint i = 0; i < LANE_ROWS; ++i) {
      uint row = first_row + i * ROW_STEP;
      if (row < FRAGMENT_M) {
        uint line = own_scores + row * SCORE_LINE;
        float next = maximum[i];
        FRAGMENT_LOOP for (uint j = 0; j < ROW_LANES; ++j) {
          next = max(next, uintBitsToFloat(operands[line + KEYS / 4][j]));
        }
        float correction = exp(maximum[i] - next);
        maximum[i] = next;
        float sum = 0.0;
        FRAGMENT_LOOP for (uint eight = 0; eight < SHARE / 8; ++eight) {
          vec4 weights[2];
          FRAGMENT_LOOP for (uint e = 0; e < 8; ++e) {
            float score = share[i * SHARE + eight * 8 + e];
            float weight = score > kMasked ? exp(score - next) * kLargestWeight : 0.0;
            weights[e / 4][e % 4] = weight;
            sum += weight;
          }
          // Queries that see values which are not finite must get NaN.
          if (MASKED && own_spoiled != 0u) {
            FRAGMENT_LOOP for (uint e = 0; e < 8; ++e) {
              bool lost =
                  (own_spoiled & (1u << (eight * 8 + e))) != 0u && weights[e / 4][e % 4] > 0.0;
              if (lost) weights[e / 4][e % 4] = uintBitsToFloat(0x7fc00000u);
            }
          }
          operands[line + row_lane * (SHARE / 8) + eight] =
              uvec4(packHalf2x16(weights[0].xy), packHalf2x16(weights[0].zw),
                    packHalf2x16(weights[1].xy), packHalf2x16(weights[1].zw));
        }
        total[i] = total[i] * correction + sum;
        if (row_lane == 0) operands[own_factors + row / 4][row % 4] = floatBitsToUint(correction);
      }
    }
    FRAGMENT_BARRIER();

    FRAGMENT_FACTORS corrections;
    LOAD_FACTORS(corrections, own_factors);
    FRAGMENT_LOOP for (uint j = 0; j < VALUE_SIZE / FRAGMENT_N; ++j) {
      SCALE_ROWS(sums[j], corrections);
    }
    FRAGMENT_LOOP for (uint k = 0; k < KEYS / FRAGMENT_K; ++k) {
      FRAGMENT_A weights;
      LOAD_A(weights, own_scores + k * (FRAGMENT_K / 8), SCORE_LINE);
      FRAGMENT_LOOP for (uint j = 0; j < VALUE_SIZE / FRAGMENT_N; ++j) {
        FRAGMENT_B values;
        LOAD_B(values, VALUES_AT + k * FRAGMENT_K * LINE + j * (FRAGMENT_N / 8), LINE);
        MULTIPLY_ADD(weights, values, sums[j]);
      }
    }
  }

  // Queries that saw no key get zero.
  FRAGMENT_LOOP for (uint i = 0; i < LANE_ROWS; ++i) {
    uint row = first_row + i * ROW_STEP;
    if (row < FRAGMENT_M)
      operands[own_scores + row * SCORE_LINE + KEYS / 4][row_lane] = floatBitsToUint(total[i]);
  }
  FRAGMENT_BARRIER();
  FRAGMENT_LOOP for (uint i = 0; i < LANE_ROWS; ++i) {
    uint row = first_row + i * ROW_STEP;
    if (row < FRAGMENT_M && row_lane == 0) {
      float all = 0.0;
      FRAGMENT_LOOP for (uint j = 0; j < ROW_LANES; ++j) {
        all += uintBitsToFloat(operands[own_scores + row * SCORE_LINE + KEYS / 4][j]);
      }
      uint query = first_query + own_query + row;
      uint head = query_head(query);
      float inverse =
          all > 0.0 ? head_factor(head) / with_sink(head, maximum[i], all, kLargestWeight) : 0.0;
      if (KEY_PARTS > 1) {
        inverse = all > 0.0 ? head_factor(head) : 0.0;
        vec2 sink = SINKS == 0u ? vec2(0) : vec2(sink_of(head), kLargestWeight);
        if (query < params.queries)
          AT(partials, partial_at(kv_row, query) + VALUE_SIZE / 4) = vec4(maximum[i], all, sink);
      }
      operands[own_factors + row / 4][row % 4] = floatBitsToUint(inverse);
    }
  }
  FRAGMENT_BARRIER();
  FRAGMENT_FACTORS inverses;
  LOAD_FACTORS(inverses, own_factors);
  FRAGMENT_LOOP for (uint j = 0; j < VALUE_SIZE / FRAGMENT_N; ++j) {
    SCALE_ROWS(sums[j], inverses);
    STORE_SUM(sums[j], own_scores, SCORE_LINE);
    FRAGMENT_BARRIER();
    FRAGMENT_LOOP for (uint step = 0; step < RESULT_FOURS; ++step) {
      uint at = step * LANES + LANE;
      uint row = at / (FRAGMENT_N / 4), four = at % (FRAGMENT_N / 4);
      uint query = first_query + own_query + row;
      if (row < FRAGMENT_M && query < params.queries) {
        vec4 found = uintBitsToFloat(operands[own_scores + row * SCORE_LINE + four]);
        if (KEY_PARTS > 1)
          AT(partials, partial_at(kv_row, query) + j * (FRAGMENT_N / 4) + four) = found;
        else
          store_result(result_element(kv_row, query) + j * FRAGMENT_N + four * 4, found);
      }
    }
    FRAGMENT_BARRIER();
  }
}
