// The k best log probabilities of each row, one workgroup per row, with subgroup reductions.
//
// The row is divided into chunks, each searched by one subgroup. The best of every chunk is in
// shared memory; a round takes the best of these, and searches only its chunk again.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#include "interface.h"
#include "beam.h"
#define BUFFER_COUNT 3
#include "buffers.glsl"

#define MOST_CHUNKS 1024

// Ids per chunk, a power of two; more where the vocabulary has more than MOST_CHUNKS chunks.
ROW_CONSTANT(CHUNK, 256);
// Loads per loop iteration: iterations are expensive on software drivers, and some stop a shader
// after 65,535.
ROW_CONSTANT(UNROLL, 4);

PARAMS(TopKParams)
#ifdef READ_TEXELS
TEXELS(0, logits)
#define LOGIT(I) uintBitsToFloat(TEXEL(logits, (I) / 4)[(I) % 4])
#else
#ifdef VECTOR
BUFFER(0, readonly, logits4, vec4)
#endif
BUFFER(0, readonly, logits, float)
#define LOGIT(I) AT(logits, I)
#endif
BUFFER(1, readonly, control, uint)
BUFFER(2, writeonly, result, uint)

#ifdef ROW_PER_SUBGROUP
// The first subgroup of the workgroup does everything, without barriers, which software drivers run
// slowly. On devices for which this is made there is only one.
#define SUBGROUP 0
#define SUBGROUPS 1
#define LANE gl_SubgroupInvocationID
#define LANES gl_SubgroupSize
float row_add(float value) { return subgroupAdd(value); }
float row_max(float value) { return subgroupMax(value); }
#else
#include "reduce.glsl"
#define SUBGROUP gl_SubgroupID
#define SUBGROUPS gl_NumSubgroups
#define LANE gl_LocalInvocationIndex
#define LANES LOCAL_SIZE
float row_add(float value) { return workgroup_add(value); }
float row_max(float value) { return workgroup_max(value); }
#endif
#include "top_k.glsl"

shared float chunk_value[MOST_CHUNKS];
shared uint chunk_id[MOST_CHUNKS];

#ifdef VECTOR
#define WIDTH 4
#define UNIT vec4
#ifdef READ_TEXELS
vec4 load(uint i) { return uintBitsToFloat(TEXEL(logits, i / 4)); }
#else
vec4 load(uint i) { return AT(logits4, i / 4); }
#endif
// Like load, where the row may end within the four: the rest becomes impossible ids.
vec4 load_last(uint first, uint id) {
  bvec4 inside = lessThan(uvec4(id) + uvec4(0, 1, 2, 3), uvec4(params.vocabulary));
  return mix(vec4(NEVER), load(first + id), inside);
}
bool lost_unit(vec4 value) {
  return not_a_logit(value.x) || not_a_logit(value.y) || not_a_logit(value.z) ||
         not_a_logit(value.w);
}
#else
#define WIDTH 1
#define UNIT float
float load(uint i) { return AT(logits, i); }
float load_last(uint first, uint id) { return load(first + id); }
bool lost_unit(float value) { return not_a_logit(value); }
#endif

Choice subgroup_best(Choice own) {
  float value = subgroupMax(own.value);
  return Choice(value, subgroupMin(own.value == value ? own.id : NO_ID));
}

void consider_unit(inout Choice own, UNIT values, uint id, Choice last) {
#ifdef VECTOR
  [[unroll]] for (uint i = 0; i < 4; ++i) {
    float value = sanitized(values[i]);
    if (value > own.value && follows(value, id + i, last)) own = Choice(value, id + i);
  }
#else
  float value = sanitized(values);
  if (value > own.value && follows(value, id, last)) own = Choice(value, id);
#endif
}

// The best id in [begin, end) after `last`, ignoring the rules.
Choice scan(uint first, uint begin, uint end, Choice last) {
  Choice own = Choice(NEVER, NO_ID);
  uint step = gl_SubgroupSize * WIDTH;
  for (; UNROLL > 1 && begin + UNROLL * step <= end; begin += UNROLL * step) {
    [[unroll]] for (uint part = 0; part < UNROLL; ++part) {
      uint id = begin + part * step + gl_SubgroupInvocationID * WIDTH;
      consider_unit(own, load(first + id), id, last);
    }
  }
  for (uint id = begin + gl_SubgroupInvocationID * WIDTH; id < end; id += step) {
    consider_unit(own, load_last(first, id), id, last);
  }
  return subgroup_best(own);
}

// Like scan, but only ids that the rules allow. best_of_all: the largest value, ignoring the rules.
Choice scan_allowed(uint first, uint begin, uint end, Choice last, out float best_of_all) {
  // There is one call in the source, because compilers inline every call.
  best_of_all = NEVER;
  do {
    last = scan(first, begin, end, last);
    best_of_all = max(best_of_all, last.value);
  } while (last.id != NO_ID && is_banned(last.id));
  return last;
}

// Only this lane writes a chunk's entry in shared memory and, in the last stage, reads it.
bool owns(uint chunk_index) { return chunk_index % gl_SubgroupSize == gl_SubgroupInvocationID; }

void main() {
  const Choice kBeforeAll = Choice(uintBitsToFloat(0x7f800000u), 0);
  uint chunk = CHUNK;
  while (chunk * MOST_CHUNKS < params.vocabulary) chunk *= 2;
  uint chunks = (params.vocabulary + chunk - 1) / chunk;
#ifdef ROW_PER_SUBGROUP
  if (gl_SubgroupID > 0) return;
#endif

  for (uint row = gl_WorkGroupID.x; row < params.rows; row += gl_NumWorkGroups.x) {
    uint first = params.first + row * params.row_stride;
    uint out_row = (params.result_row + row) * params.k;
    read_rules(row);
    uint forced = forced_id();
    if (forced != NO_ID) {
      for (uint rank = LANE; rank < params.k; rank += LANES) write_forced(out_row, rank, forced);
      continue;
    }

    // The best of every chunk, and the maximum of all, ignoring the rules.
#ifndef ROW_PER_SUBGROUP
    barrier();
#endif
    float highest = NEVER;
    for (uint c = SUBGROUP; c < chunks; c += SUBGROUPS) {
      uint begin = c * chunk, end = min(begin + chunk, params.vocabulary);
      float best_of_all;
      Choice best = scan_allowed(first, begin, end, kBeforeAll, best_of_all);
      highest = max(highest, best_of_all);
      if (owns(c)) {
        chunk_value[c] = best.value;
        chunk_id[c] = best.id;
      }
    }
    highest = row_max(highest);

    // Sum of exponentials.
    float origin = highest == NEVER ? 0.0 : highest;
    bool lost = false;
    UNIT sums = UNIT(0), block = UNIT(0);
    uint begin = 0, step = LANES * WIDTH, lane_begin = LANE * WIDTH;
    for (; begin + UNROLL * step <= params.vocabulary; begin += UNROLL * step) {
      [[unroll]] for (uint part = 0; part < UNROLL; ++part) {
        UNIT value = load(first + begin + part * step + lane_begin);
        lost = lost || lost_unit(value);
        block += exp(value - origin);
      }
      // Summed in two levels: a single running sum over a large vocabulary would round too often.
      if ((begin / (UNROLL * step)) % 32 == 31) {
        sums += block;
        block = UNIT(0);
      }
    }
    sums += block;
    for (uint id = begin + lane_begin; id < params.vocabulary; id += step) {
      UNIT value = load_last(first, id);
      lost = lost || lost_unit(value);
      sums += exp(value - origin);
    }
#ifdef VECTOR
    float sum = (sums.x + sums.y) + (sums.z + sums.w);
#else
    float sum = sums;
#endif
    sum = row_add(lost ? -LOST : sum);
    if (sum < 0.0) {
      for (uint rank = LANE; rank < params.k; rank += LANES) write_lost(out_row, rank);
      continue;
    }
    float log_sum = log(sum);

    // After the barriers of the sum, the chunks' best ids are there for the first subgroup, which
    // continues alone.
    if (SUBGROUP == 0) {
      uint rank = 0;
      for (; rank < params.k; ++rank) {
        Choice own = Choice(NEVER, NO_ID);
        for (uint c = gl_SubgroupInvocationID; c < chunks; c += gl_SubgroupSize) {
          if (chunk_value[c] > own.value) own = Choice(chunk_value[c], chunk_id[c]);
        }
        Choice best = subgroup_best(own);
        if (best.id == NO_ID) break;
        uint c = best.id / chunk;
        Choice next = Choice(NEVER, NO_ID);
        if (rank + 1 < params.k) {
          float unused;
          next = scan_allowed(first, c * chunk, min(c * chunk + chunk, params.vocabulary), best,
                              unused);
        }
        if (owns(c)) {
          write_choice(out_row, rank, best.value - highest - log_sum, best.id);
          chunk_value[c] = next.value;
          chunk_id[c] = next.id;
        }
      }
      if (subgroupElect()) write_impossible(first, out_row, rank);
    }
  }
}
