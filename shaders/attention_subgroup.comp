// Attention for devices whose lanes are SIMD lanes: one subgroup per TILE_Q queries of a head, no
// shared memory. Lanes are along keys for the scores and along value columns for the sums; lanes
// exchange values by shuffles.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "interface.h"
#include "attention.h"
#define READ_VECTORS
#define BLOCK_SPARSE
#include "attention_common.glsl"
#include "attention_general.glsl"
#ifdef SPLIT_KEYS
#include "attention_split_keys.glsl"
#endif

ROW_CONSTANT(TILE_Q, 8);
ROW_CONSTANT(LANE_KEYS, 2);  // most keys per lane and block

// Beams attend to short texts, whose keys do not fill a larger block.
const uint KEYS = ANCESTRY != 0 && LANE_KEYS > 2 ? 2 : LANE_KEYS;
const uint BLOCK = KEYS * SUBGROUP_SIZE;
const uint STEP = 8;  // columns of a head, per step of the scores
const uint COLUMNS = (VALUE_SIZE / 4 + SUBGROUP_SIZE - 1) / SUBGROUP_SIZE;  // in fours, per lane
const uint Q_LANES = (TILE_Q + SUBGROUP_SIZE - 1) / SUBGROUP_SIZE;          // queries per lane

// Steps of a butterfly over up to 128 lanes. The loop counts up: not all drivers unroll a loop that
// halves its counter.
const uint kMaxSteps = 7;

void main() {
  const uint lane = gl_SubgroupInvocationID;
  const uint first_query = QUERY_TILE * TILE_Q;
  const uint kv_row = gl_WorkGroupID.z;
  const uint k_column = params.k_first + key_head() * HEAD_SIZE;
  const uint v_column = params.v_first + key_head() * VALUE_SIZE;
  const int keys = key_count(kv_row);

  // Lane l loads a piece of query l for all lanes; the last tile repeats the last query.
  uint q_base[Q_LANES];
  uint head[Q_LANES];
  [[unroll]] for (uint i = 0; i < Q_LANES; ++i) {
    uint query = min(first_query + min(i * SUBGROUP_SIZE + lane, TILE_Q - 1), params.queries - 1);
    q_base[i] = q_element(kv_row, query);
    head[i] = query_head(query);
  }
  // Columns past the end repeat the last ones and are not stored.
  uint column[COLUMNS];
  [[unroll]] for (uint c = 0; c < COLUMNS; ++c) {
    column[c] = min(c * SUBGROUP_SIZE + lane, VALUE_SIZE / 4 - 1) * 4;
  }

  uvec2 visible[TILE_Q];
  int position[TILE_Q];
  float center[TILE_Q];
  uint start = params.kv_len, seen = 0;
  [[unroll]] for (uint i = 0; i < TILE_Q; ++i) {
    uint query = min(first_query + i, params.queries - 1);
    visible[i] = reachable_keys(kv_row, query, keys);
    position[i] = position_of(query, keys);
    if (CENTER != CENTER_NONE) center[i] = center_of(kv_row, query, keys);
    start = min(start, visible[i].x);
    seen = max(seen, visible[i].y);
  }

  vec4 sums[TILE_Q * COLUMNS];
  float maximum[TILE_Q];  // hard attention: of this lane's keys, and the first one with it
  uint best[TILE_Q];
  float total[TILE_Q];  // over this lane's keys
  [[unroll]] for (uint i = 0; i < TILE_Q; ++i) {
    maximum[i] = kMasked;
    best[i] = 0;
    total[i] = 0;
    [[unroll]] for (uint c = 0; c < COLUMNS; ++c) sums[i * COLUMNS + c] = vec4(0);
  }

  // Loops test at the bottom: when a loop tests at the top, these drivers run the rest of the body
  // once more, masked. So there is always a first block, with all keys masked when there are none.
  uvec2 range = uvec2(start, seen);
#ifdef SPLIT_KEYS
  const Split split = split_of(range, BLOCK);
  range = split.keys;
#endif
  KeyRun run = first_run(first_query, keys, range);
  do {
    const uint first_key = run.key;
    // Keys past the run's last repeat that one, with a weight of zero.
    const uint last_key = max(run.end, 1) - 1;
    uint row[KEYS];  // start of each of this lane's keys
    [[unroll]] for (uint j = 0; j < KEYS; ++j) {
      row[j] = key_base(kv_row, min(first_key + j * SUBGROUP_SIZE + lane, last_key));
    }

    // Scores of this lane's keys for every query.
    float score[TILE_Q * KEYS];
    [[unroll]] for (uint i = 0; i < TILE_Q * KEYS; ++i) score[i] = 0;
    uint d = 0;
    do {
      vec4 query[Q_LANES * 2];
      vec4 weights[Q_LANES * 2];
      [[unroll]] for (uint i = 0; i < Q_LANES; ++i) {
        query[2 * i] = q_at(q_base[i] + d);
        query[2 * i + 1] = q_at(q_base[i] + d + 4);
        if (WEIGHTED) {
          weights[2 * i] = score_weights(head[i], d);
          weights[2 * i + 1] = score_weights(head[i], d + 4);
        }
      }
      vec4 key[KEYS * 2];
      [[unroll]] for (uint j = 0; j < KEYS; ++j) {
        kv_eight(row[j], k_column + d, key[2 * j], key[2 * j + 1]);
      }
      [[unroll]] for (uint i = 0; i < TILE_Q; ++i) {
        [[unroll]] for (uint e = 0; e < STEP; ++e) {
          float factor =
              subgroupShuffle(query[i / SUBGROUP_SIZE * 2 + e / 4][e % 4], i % SUBGROUP_SIZE);
          // A single head has a single vector, which is shuffled once for all queries.
          const uint of = PACK == 1 ? 0 : i;
          float weight = 0;
          if (WEIGHTED)
            weight =
                subgroupShuffle(weights[of / SUBGROUP_SIZE * 2 + e / 4][e % 4], of % SUBGROUP_SIZE);
          [[unroll]] for (uint j = 0; j < KEYS; ++j) {
            score[i * KEYS + j] += score_term(factor, key[2 * j + e / 4][e % 4], weight);
          }
        }
      }
      d += STEP;
    } while (d < HEAD_SIZE);

    // Online softmax: weights of this block relative to the maximum so far.
    [[unroll]] for (uint i = 0; i < TILE_Q; ++i) {
      float next = maximum[i];
      bool allowed[KEYS];
      float block_maximum = kMasked;
      [[unroll]] for (uint j = 0; j < KEYS; ++j) {
        uint key = first_key + j * SUBGROUP_SIZE + lane;
        uint query = min(first_query + i, params.queries - 1);
        float scaled =
            score_of(score[i * KEYS + j], kv_row, query, position[i], min(key, last_key));
        allowed[j] = within(key, visible[i]);
        if (PATTERN_QUERIES != 0) allowed[j] = allowed[j] && key < run.end;
        if (GLOBALS != 0) allowed[j] = allowed[j] && global_allows(position[i], min(key, last_key));
        if (BIAS >= BIAS_MASK) allowed[j] = allowed[j] && scaled > kMasked;
        scaled = allowed[j] ? scaled : kMasked;
        if (HARD != 0 && scaled > maximum[i]) {
          maximum[i] = scaled;
          best[i] = key;
        }
        score[i * KEYS + j] = scaled;
        block_maximum = max(block_maximum, scaled);
      }
      if (HARD != 0) continue;
      [[unroll]] for (uint step = 0; step < kMaxSteps; ++step) {
        if (1u << step < SUBGROUP_SIZE) {
          block_maximum = max(block_maximum, subgroupShuffleXor(block_maximum, 1u << step));
        }
      }
      next = max(next, block_maximum);
      float correction = exp(maximum[i] - next);
      maximum[i] = next;
      total[i] *= correction;
      [[unroll]] for (uint c = 0; c < COLUMNS; ++c) sums[i * COLUMNS + c] *= correction;
      [[unroll]] for (uint j = 0; j < KEYS; ++j) {
        float weight = allowed[j] ? exp(score[i * KEYS + j] - next) : 0.0;
        total[i] += weight;
        if (CENTER != CENTER_NONE)
          weight *= center_factor(center[i], first_key + j * SUBGROUP_SIZE + lane);
        score[i * KEYS + j] = weight;
      }
    }

    // Sums of this lane's value columns over the block's keys. Hard attention reads one value at
    // the end.
    [[unroll]] for (uint j = 0; HARD == 0 && j < KEYS; ++j) {
      [[unroll]] for (uint t = 0; t < SUBGROUP_SIZE; ++t) {
        uint v_base;
        if (ANCESTRY != 0 || CACHE_PAGE != 0) {
          v_base = subgroupShuffle(row[j], t);
        } else {
          v_base = key_base(kv_row, min(first_key + j * SUBGROUP_SIZE + t, last_key));
        }
        vec4 value[COLUMNS];
        [[unroll]] for (uint c = 0; c < COLUMNS; ++c) {
          value[c] = kv_at(v_base, v_column + column[c]);
        }
        [[unroll]] for (uint i = 0; i < TILE_Q; ++i) {
          float weight = subgroupShuffle(score[i * KEYS + j], t);
          [[unroll]] for (uint c = 0; c < COLUMNS; ++c) {
            // A key that only later queries see may hold NaN; a weight of zero hides it.
            if (UNEQUAL) {
              sums[i * COLUMNS + c] += weight != 0 ? weight * value[c] : vec4(0);
            } else {
              sums[i * COLUMNS + c] += weight * value[c];
            }
          }
        }
      }
    }
    run = step_run(run, BLOCK, range);
  } while (run.key < run.end);

#ifdef SPLIT_KEYS
  // No invocation returns early: these drivers would run all that follows under a mask.
  bool stores = split.index == 0, merges = false;
  if (NUM_SPLITS > 1 && split.count > 1) {
    [[unroll]] for (uint i = 0; i < TILE_Q; ++i) {
      float all = total[i];
      [[unroll]] for (uint step = 0; step < kMaxSteps; ++step) {
        if (1u << step < SUBGROUP_SIZE) all += subgroupShuffleXor(all, 1u << step);
      }
      uint query = first_query + i, at = partial_at(kv_row, query, split.index);
      bool kept = query < params.queries && split.index < split.count;
      [[unroll]] for (uint c = 0; c < COLUMNS; ++c) {
        if (kept && c * SUBGROUP_SIZE + lane < VALUE_SIZE / 4)
          AT(partials, at + column[c] / 4) = sums[i * COLUMNS + c];
      }
      if (kept && lane == 0) AT(partials, at + VALUE_SIZE / 4) = vec4(maximum[i], all, 0, 0);
    }
    // Every lane counts itself after its own writes: a barrier, even of a subgroup, makes llvmpipe
    // keep all state in memory.
    memoryBarrierBuffer();
    uint completed = 0;
    if (split.index < split.count)
      completed = atomicAdd(AT(split_counters, split_counter_at(kv_row, first_query)), 1) + 1;
    [[unroll]] for (uint step = 0; step < kMaxSteps; ++step) {
      if (1u << step < SUBGROUP_SIZE)
        completed = max(completed, subgroupShuffleXor(completed, 1u << step));
    }
    merges = completed == split.count * SUBGROUP_SIZE;
    memoryBarrierBuffer();
    if (merges && lane == 0) AT(split_counters, split_counter_at(kv_row, first_query)) = 0;
    stores = merges;
    // The loop over splits is the outer one: a loop inside an unrolled one keeps drivers from
    // unrolling, and then the sums are not in registers. Workgroups that store nothing lose their
    // sums.
    [[unroll]] for (uint i = 0; i < TILE_Q; ++i) {
      maximum[i] = kMasked;
      total[i] = 0;
      [[unroll]] for (uint c = 0; c < COLUMNS; ++c) sums[i * COLUMNS + c] = vec4(0);
    }
    uint from = 0;
    do {
      [[unroll]] for (uint i = 0; i < TILE_Q; ++i) {
        uint at = partial_at(kv_row, min(first_query + i, params.queries - 1), from);
        vec2 part = AT(partials, at + VALUE_SIZE / 4).xy;
        float next = max(maximum[i], part.x), before = exp(maximum[i] - next),
              factor = exp(part.x - next);
        maximum[i] = next;
        // Totals are summed over the lanes below.
        total[i] = total[i] * before + (lane == 0 ? part.y * factor : 0.0);
        [[unroll]] for (uint c = 0; c < COLUMNS; ++c) {
          sums[i * COLUMNS + c] =
              sums[i * COLUMNS + c] * before + AT(partials, at + column[c] / 4) * factor;
        }
      }
      ++from;
    } while (merges && from < split.count);
  }
#else
  const bool stores = true;
#endif

  const float factor = head_factor(query_head(first_query));
  [[unroll]] for (uint i = 0; i < TILE_Q; ++i) {
    float all = total[i];
    [[unroll]] for (uint step = 0; HARD == 0 && step < kMaxSteps; ++step) {
      if (1u << step < SUBGROUP_SIZE) all += subgroupShuffleXor(all, 1u << step);
    }
    if (HARD != 0) {
      [[unroll]] for (uint step = 0; step < kMaxSteps; ++step) {
        if (1u << step < SUBGROUP_SIZE) {
          float other = subgroupShuffleXor(maximum[i], 1u << step);
          uint other_best = subgroupShuffleXor(best[i], 1u << step);
          if (other > maximum[i] || (other == maximum[i] && other_best < best[i]))
            best[i] = other_best;
          maximum[i] = max(maximum[i], other);
        }
      }
      all = maximum[i] > kMasked ? 1.0 : 0.0;
      const uint base = key_base(kv_row, best[i]);
      [[unroll]] for (uint c = 0; c < COLUMNS; ++c) {
        sums[i * COLUMNS + c] = kv_at(base, v_column + column[c]);
      }
    }
    uint query = first_query + i;
    float inverse = (PACK == 1 ? factor : head_factor(query_head(query))) /
                    with_sink(query_head(query), maximum[i], all, 1.0);
    [[unroll]] for (uint c = 0; c < COLUMNS; ++c) {
      if (stores && query < params.queries && c * SUBGROUP_SIZE + lane < VALUE_SIZE / 4) {
        // Without a visible key the sums are key 0's value times zero, which may be NaN.
        vec4 value = all > 0 ? sums[i * COLUMNS + c] * inverse : vec4(0);
        store_result(result_element(kv_row, query) + column[c], value);
      }
    }
  }
}
