// Products of tokens with the matrices of their experts: a subgroup takes one row of x and TILE_N
// columns of the result. Its lanes are along the depth, so that they read neighbouring words, and
// are summed once.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "expert_quads.glsl"

void main() {
#ifdef WEIGHT_GRIDS
  fill_grid();
#endif
  const uint lane = gl_SubgroupInvocationID, quads = params.depth / 4;
  const uint blocks = (params.columns + TILE_N - 1) / TILE_N,
             slots = COMBINE == 1 ? params.experts_per_token : 1;
  for (uint unit = gl_WorkGroupID.x; unit < params.rows * blocks; unit += gl_NumWorkGroups.x) {
    const uint row = unit / blocks, column = unit % blocks * TILE_N;
    float results[TILE_N];
    [[unroll]] for (uint j = 0; j < TILE_N; ++j) results[j] = 0;
    float gates = 0;
    uint weight_row[ROWS];
    for (uint slot = 0; slot < slots; ++slot) {
      const uint route = COMBINE == 1 ? row * params.experts_per_token + slot : row;
      const uint x_first = (COMBINE == 1 ? route : row / params.experts_per_token) * quads;
      const uint expert = expert_of(route);
      [[unroll]] for (uint j = 0; j < ROWS; ++j) weight_row[j] = matrix_row(expert, column, j);
      if (!any_bound(weight_row[0], weight_row[ROWS - 1] + 1)) continue;
      float sums[ROWS];
      [[unroll]] for (uint j = 0; j < ROWS; ++j) sums[j] = 0;
#ifdef WEIGHT_BLOCKS
      for (uint word = lane; word < quads / 2; word += SUBGROUP_SIZE) {
        const uint group = word / 4, s = word % 4;
        const vec4 low = AT(x, x_first + group * 8 + s), high = AT(x, x_first + group * 8 + 4 + s);
        [[unroll]] for (uint j = 0; j < ROWS; ++j) {
          vec4 first, second;
          word_values(weight_row[j], group, s, first, second);
          sums[j] += dot(low, first);
          sums[j] += dot(high, second);
        }
      }
#else
      for (uint quad = lane; quad < quads; quad += SUBGROUP_SIZE) {
        const vec4 factor = AT(x, x_first + quad);
        [[unroll]] for (uint j = 0; j < ROWS; ++j) {
          sums[j] += dot(factor, quad_values(weight_row[j], quad));
        }
      }
#endif
      [[unroll]] for (uint j = 0; j < ROWS; ++j) {
        sums[j] = with_bias(subgroupAdd(sums[j]), weight_row[j]);
      }
      const float gate = COMBINE == 1 ? gate_of(route) : 1.0;
      gates += gate;
      [[unroll]] for (uint j = 0; j < TILE_N; ++j) {
        results[j] += gate * result_of(sums[j * PER_COLUMN], sums[j * PER_COLUMN + GATED]);
      }
    }
    [[unroll]] for (uint j = 0; j < TILE_N; ++j) {
      const uint first = weight_row[j * PER_COLUMN];
      if (lane == j % SUBGROUP_SIZE && column + j < params.columns && any_bound(first, first + 1)) {
        AT(y, row * params.columns + column + j) = NORMALIZE == 1 ? results[j] / gates : results[j];
      }
    }
  }
}
