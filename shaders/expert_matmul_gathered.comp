// Products of tokens with the matrices of the experts that they were sent to, for many tokens: a
// subgroup takes one expert and TILE_N columns of the result. Its lanes look through all routes for
// those that lead to the expert; each TILE_M of them share what is read of the matrix. Lanes stand
// along the depth, and are added up once for each tile.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#include "interface.h"
#include "experts.h"
#define BUFFER_COUNT 4
#include "buffers.glsl"
#include "types.glsl"
#include "activation.glsl"

layout(constant_id = EXPERT_GATED) const uint GATED = 0;
layout(constant_id = EXPERT_ACTIVATION) const uint FUNCTION = 0;
layout(constant_id = EXPERT_BIAS) const uint BIAS = 0;
layout(constant_id = EXPERT_LIMIT) const float LIMIT = 0.0;
ROW_CONSTANT(TILE_M, 4);
ROW_CONSTANT(TILE_N, 8);

PARAMS(ExpertParams)
BUFFER(0, readonly, x, vec4)
BUFFER(2, readonly, control, uint)
BUFFER(3, writeonly, y, float)
#if defined(WEIGHT_BLOCKS)
#define BLOCKS_BUFFER 1
#define BLOCKS_COLUMNS params.depth
#include "blocks.glsl"
#elif defined(WEIGHT_HALF)
BUFFER(1, readonly, weight, uvec2)
vec4 weight_at(uint quad) { return unpack_weight4(AT(weight, quad)); }
#else
BUFFER(1, readonly, weight, vec4)
vec4 weight_at(uint quad) { return AT(weight, quad); }
#endif

const uint PER_COLUMN = GATED == 1 ? 2 : 1, ROWS = PER_COLUMN * TILE_N;  // of a matrix

/// A sum of products as the result has it; GATED: the one beside it gates.
float value_of(float sum, float beside) {
  if (GATED == 0) return activate(sum, FUNCTION);
  if (LIMIT == 0.0) return activate(sum, FUNCTION) * beside;
  return activate(min(sum, LIMIT), FUNCTION) * (clamp(beside, -LIMIT, LIMIT) + 1.0);
}

/// The first `count` of these routes, which all lead to the expert.
void multiply(uint routes[TILE_M], uint count, uint expert, uint column) {
  const uint lane = gl_SubgroupInvocationID, quads = params.depth / 4;
  const uint last = params.columns * PER_COLUMN - 1;
  uint weight_row[ROWS];  // past the last column, the last again
  [[unroll]] for (uint j = 0; j < ROWS; ++j) {
    weight_row[j] = expert * (last + 1) + min(column * PER_COLUMN + j, last);
  }
  uint x_first[TILE_M];  // past the last route, the first again
  float sums[TILE_M][ROWS];
  [[unroll]] for (uint i = 0; i < TILE_M; ++i) {
    x_first[i] = routes[i < count ? i : 0] / params.experts_per_token * quads;
    [[unroll]] for (uint j = 0; j < ROWS; ++j) sums[i][j] = 0;
  }
#ifdef WEIGHT_BLOCKS
  for (uint word = lane; word < quads / 2; word += SUBGROUP_SIZE) {
    const uint group = word / 4, s = word % 4, at = group * 8 + s;
    vec4 low[TILE_M], high[TILE_M];
    [[unroll]] for (uint i = 0; i < TILE_M; ++i) {
      low[i] = AT(x, x_first[i] + at);
      high[i] = AT(x, x_first[i] + at + 4);
    }
    [[unroll]] for (uint j = 0; j < ROWS; ++j) {
      const uint row_at = weight_row[j] * row_words(FORMAT);
      const GroupScales scales = group_scales(FORMAT, row_at, group);
      const QuadPair pair = quad_pair(FORMAT, row_at, group, s, group_high(FORMAT, row_at, group));
      const vec4 first =
          quad_quants(FORMAT, pair.first) * quad_scale(scales.scale.x) + scales.minimum.x;
      const vec4 second =
          quad_quants(FORMAT, pair.second) * quad_scale(scales.scale.y) + scales.minimum.y;
      [[unroll]] for (uint i = 0; i < TILE_M; ++i) {
        sums[i][j] += dot(low[i], first) + dot(high[i], second);
      }
    }
  }
#else
  for (uint quad = lane; quad < quads; quad += SUBGROUP_SIZE) {
    vec4 values[TILE_M];
    [[unroll]] for (uint i = 0; i < TILE_M; ++i) values[i] = AT(x, x_first[i] + quad);
    [[unroll]] for (uint j = 0; j < ROWS; ++j) {
      const vec4 factor = weight_at(weight_row[j] * quads + quad);
      [[unroll]] for (uint i = 0; i < TILE_M; ++i) sums[i][j] += dot(values[i], factor);
    }
  }
#endif
  [[unroll]] for (uint i = 0; i < TILE_M; ++i) {
    [[unroll]] for (uint j = 0; j < ROWS; ++j) {
      sums[i][j] = subgroupAdd(sums[i][j]);
      if (BIAS == 1) sums[i][j] += uintBitsToFloat(AT(control, params.bias_offset + weight_row[j]));
    }
    [[unroll]] for (uint j = 0; j < TILE_N; ++j) {
      if (i < count && lane == (i * TILE_N + j) % SUBGROUP_SIZE && column + j < params.columns) {
        AT(y, routes[i] * params.columns + column + j) =
            value_of(sums[i][j * PER_COLUMN], sums[i][j * PER_COLUMN + GATED]);
      }
    }
  }
}

void main() {
  const uint lane = gl_SubgroupInvocationID;
  const uint blocks = (params.columns + TILE_N - 1) / TILE_N;
  for (uint unit = gl_WorkGroupID.x; unit < params.experts * blocks; unit += gl_NumWorkGroups.x) {
    const uint expert = unit / blocks, column = unit % blocks * TILE_N;
    uint routes[TILE_M];
    [[unroll]] for (uint i = 0; i < TILE_M; ++i) routes[i] = 0;
    uint held = 0;  // routes that wait for a tile to be full
    for (uint base = 0; base < params.rows; base += SUBGROUP_SIZE) {
      const uint route = base + lane;
      const bool leads_here =
          route < params.rows &&
          min(AT(control, min(route, params.rows - 1) * 2 + 1), params.experts - 1) == expert;
      const uint one = leads_here ? 1 : 0, place = held + subgroupExclusiveAdd(one);
      const uint end = held + subgroupAdd(one);
      if (end == held) continue;
      uint taken = 0;
      for (bool full = true; full;) {
        [[unroll]] for (uint i = 0; i < TILE_M; ++i) {
          const uint found = subgroupMax(leads_here && place == taken + i ? route + 1 : 0);
          if (found > 0) routes[i] = found - 1;
        }
        full = end - taken >= TILE_M;
        if (full) {
          multiply(routes, TILE_M, expert, column);
          taken += TILE_M;
        }
      }
      held = end - taken;
    }
    if (held > 0) multiply(routes, held, expert, column);
  }
}
