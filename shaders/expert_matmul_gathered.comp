// Products of tokens with the matrices of their experts, for many tokens: a subgroup takes one
// expert and TILE_N columns of the result. Its lanes search all routes for those to the expert;
// TILE_M of them at a time share the loads of the matrix. Lanes are along the depth, and are summed
// once for each tile.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "expert_quads.glsl"

ROW_CONSTANT(TILE_M, 4);

/// Multiplies the first `count` of these routes, which all lead to the expert.
void multiply(uint routes[TILE_M], uint count, uint expert, uint column) {
  const uint lane = gl_SubgroupInvocationID, quads = params.depth / 4;
  uint weight_row[ROWS];
  [[unroll]] for (uint j = 0; j < ROWS; ++j) weight_row[j] = matrix_row(expert, column, j);
  uint x_first[TILE_M];  // routes past the last repeat the first
  float sums[TILE_M][ROWS];
  [[unroll]] for (uint i = 0; i < TILE_M; ++i) {
    x_first[i] = (i < count ? routes[i] : routes[0]) / params.experts_per_token * quads;
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
      vec4 first, second;
      word_values(weight_row[j], group, s, first, second);
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
      const vec4 factor = quad_values(weight_row[j], quad);
      [[unroll]] for (uint i = 0; i < TILE_M; ++i) sums[i][j] += dot(values[i], factor);
    }
  }
#endif
  [[unroll]] for (uint i = 0; i < TILE_M; ++i) {
    [[unroll]] for (uint j = 0; j < ROWS; ++j) {
      sums[i][j] = with_bias(subgroupAdd(sums[i][j]), weight_row[j]);
    }
    [[unroll]] for (uint j = 0; j < TILE_N; ++j) {
      const uint first = weight_row[j * PER_COLUMN];
      if (i < count && lane == (i * TILE_N + j) % SUBGROUP_SIZE && column + j < params.columns &&
          any_bound(first, first + 1)) {
        AT(y, routes[i] * params.columns + column + j) =
            result_of(sums[i][j * PER_COLUMN], sums[i][j * PER_COLUMN + GATED]);
      }
    }
  }
}

void main() {
  const uint lane = gl_SubgroupInvocationID;
  const uint blocks = (params.columns + TILE_N - 1) / TILE_N;
  for (uint unit = gl_WorkGroupID.x; unit < params.experts * blocks; unit += gl_NumWorkGroups.x) {
    const uint expert = unit / blocks, column = unit % blocks * TILE_N;
    const uint first = (expert * params.columns + column) * PER_COLUMN;
    if (!any_bound(first, first + ROWS)) continue;
    uint routes[TILE_M];
    [[unroll]] for (uint i = 0; i < TILE_M; ++i) routes[i] = 0;
    uint held = 0;  // routes that wait until the tile is full
    for (uint base = 0; base < params.rows; base += SUBGROUP_SIZE) {
      const uint route = base + lane;
      const bool leads_here =
          route < params.rows && expert_of(min(route, params.rows - 1)) == expert;
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
