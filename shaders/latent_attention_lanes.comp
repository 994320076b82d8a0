// Attention of many heads over one key per position, whose last columns are its value, for devices
// whose lanes are SIMD lanes: one subgroup per TILE_Q queries. Like in attention_subgroup.comp,
// lanes are along keys for the scores and along value columns for the sums, and exchange values by
// shuffles. The sums of such wide values do not fit registers: they are in shared memory, each used
// by one lane only, and pass through registers once per block of keys.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "interface.h"
#include "attention.h"
#define READ_VECTORS
#include "attention_common.glsl"

ROW_CONSTANT(TILE_Q, 8);     // at most 8
ROW_CONSTANT(LANE_KEYS, 4);  // keys per lane and block

const uint BLOCK = LANE_KEYS * SUBGROUP_SIZE;
const uint STEP = 8;  // columns of a head, per step of the scores
const uint VALUE = VALUE_SIZE / 4;
const uint Q_LANES = (TILE_Q + SUBGROUP_SIZE - 1) / SUBGROUP_SIZE;  // queries per lane
const uint kMaxSteps = 7;  // steps of a butterfly over up to 128 lanes
// Queries of a tile see the same keys, unless it has heads of two positions.
const bool UNEQUAL = MASKED && PACK % TILE_Q != 0;

const uint kMaxQueries = 8, kMaxQuads = 128;
shared vec4 sums[kMaxQueries * kMaxQuads];

void main() {
  const uint lane = gl_SubgroupInvocationID;
  const uint first_query = gl_WorkGroupID.x * TILE_Q;
  const uint kv_row = gl_WorkGroupID.z;
  const int keys = key_count(kv_row);

  // Lane l loads a piece of query l for all lanes; the last tile repeats the last query.
  uint q_base[Q_LANES];
  [[unroll]] for (uint i = 0; i < Q_LANES; ++i) {
    uint query = min(first_query + min(i * SUBGROUP_SIZE + lane, TILE_Q - 1), params.queries - 1);
    q_base[i] = q_element(kv_row, query);
  }
  uvec2 visible[TILE_Q];
  float maximum[TILE_Q];
  float total[TILE_Q];  // over this lane's keys
  uint start = params.kv_len, seen = 0;
  [[unroll]] for (uint i = 0; i < TILE_Q; ++i) {
    visible[i] = visible_keys(min(first_query + i, params.queries - 1), keys);
    start = min(start, visible[i].x);
    seen = max(seen, visible[i].y);
    maximum[i] = kMasked;
    total[i] = 0;
  }

  // Loops test at the bottom: when a loop tests at the top, these drivers run the rest of the body
  // once more, masked. So there is always a first block, with all keys masked when there are none.
  const uint last_key = max(seen, 1) - 1;
  uint first_key = start;
  do {
    uint row[LANE_KEYS];  // start of each of this lane's keys; past the last they repeat it
    [[unroll]] for (uint j = 0; j < LANE_KEYS; ++j) {
      row[j] = key_base(kv_row, min(first_key + j * SUBGROUP_SIZE + lane, last_key));
    }
    float score[TILE_Q * LANE_KEYS];
    [[unroll]] for (uint i = 0; i < TILE_Q * LANE_KEYS; ++i) score[i] = 0;
    uint d = 0;
    do {
      vec4 query[Q_LANES * 2];
      [[unroll]] for (uint i = 0; i < Q_LANES; ++i) {
        query[2 * i] = q_at(q_base[i] + d);
        query[2 * i + 1] = q_at(q_base[i] + d + 4);
      }
      vec4 key[LANE_KEYS * 2];
      [[unroll]] for (uint j = 0; j < LANE_KEYS; ++j) {
        kv_eight(row[j], params.k_first + d, key[2 * j], key[2 * j + 1]);
      }
      [[unroll]] for (uint i = 0; i < TILE_Q; ++i) {
        [[unroll]] for (uint e = 0; e < STEP; ++e) {
          float factor =
              subgroupShuffle(query[i / SUBGROUP_SIZE * 2 + e / 4][e % 4], i % SUBGROUP_SIZE);
          [[unroll]] for (uint j = 0; j < LANE_KEYS; ++j) {
            score[i * LANE_KEYS + j] += factor * key[2 * j + e / 4][e % 4];
          }
        }
      }
      d += STEP;
    } while (d < HEAD_SIZE);

    // Online softmax: weights of this block relative to the maximum so far.
    float correction[TILE_Q];
    [[unroll]] for (uint i = 0; i < TILE_Q; ++i) {
      bool allowed[LANE_KEYS];
      float next = kMasked;
      [[unroll]] for (uint j = 0; j < LANE_KEYS; ++j) {
        uint key = first_key + j * SUBGROUP_SIZE + lane;
        allowed[j] = key >= visible[i].x && key < visible[i].y;
        float scaled = score[i * LANE_KEYS + j] * params.scale;
        score[i * LANE_KEYS + j] = allowed[j] ? scaled : kMasked;
        next = max(next, score[i * LANE_KEYS + j]);
      }
      [[unroll]] for (uint step = 0; step < kMaxSteps; ++step) {
        if (1u << step < SUBGROUP_SIZE) next = max(next, subgroupShuffleXor(next, 1u << step));
      }
      next = max(next, maximum[i]);
      correction[i] = exp(maximum[i] - next);
      maximum[i] = next;
      total[i] *= correction[i];
      [[unroll]] for (uint j = 0; j < LANE_KEYS; ++j) {
        float weight = allowed[j] ? exp(score[i * LANE_KEYS + j] - next) : 0.0;
        total[i] += weight;
        score[i * LANE_KEYS + j] = weight;
      }
    }

    // A step of columns, one quad per lane, over all keys of the block.
    uint quad = lane;
    do {
      const uint column = params.v_first + min(quad, VALUE - 1) * 4;
      vec4 sum[TILE_Q];
      [[unroll]] for (uint i = 0; i < TILE_Q; ++i) {
        vec4 before = sums[i * kMaxQuads + quad];
        sum[i] = first_key == start ? vec4(0) : before * correction[i];
      }
      [[unroll]] for (uint j = 0; j < LANE_KEYS; ++j) {
        [[unroll]] for (uint t = 0; t < SUBGROUP_SIZE; ++t) {
          uint base;
          if (CACHE_PAGE != 0) {
            base = subgroupShuffle(row[j], t);
          } else {
            base = key_base(kv_row, min(first_key + j * SUBGROUP_SIZE + t, last_key));
          }
          vec4 value = kv_at(base, column);
          [[unroll]] for (uint i = 0; i < TILE_Q; ++i) {
            float weight = subgroupShuffle(score[i * LANE_KEYS + j], t);
            // A key that only later queries see may hold NaN; a weight of zero hides it.
            if (UNEQUAL) {
              sum[i] += weight != 0 ? weight * value : vec4(0);
            } else {
              sum[i] += weight * value;
            }
          }
        }
      }
      [[unroll]] for (uint i = 0; i < TILE_Q; ++i) sums[i * kMaxQuads + quad] = sum[i];
      quad += SUBGROUP_SIZE;
    } while (quad - lane < VALUE);
    first_key += BLOCK;
  } while (first_key < seen);

  [[unroll]] for (uint i = 0; i < TILE_Q; ++i) {
    float all = total[i];
    [[unroll]] for (uint step = 0; step < kMaxSteps; ++step) {
      if (1u << step < SUBGROUP_SIZE) all += subgroupShuffleXor(all, 1u << step);
    }
    total[i] = all;
  }
  uint quad = lane;
  do {
    [[unroll]] for (uint i = 0; i < TILE_Q; ++i) {
      const uint query = first_query + i;
      vec4 sum = sums[i * kMaxQuads + quad];
      if (query < params.queries && quad < VALUE) {
        // Without a visible key the sums are key 0's value times zero, which may be NaN.
        vec4 value = total[i] > 0 ? sum * (head_factor(query_head(query)) / total[i]) : vec4(0);
        store_result(result_element(kv_row, query) + quad * 4, value);
      }
    }
    quad += SUBGROUP_SIZE;
  } while (quad - lane < VALUE);
}
