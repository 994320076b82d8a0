// Multiplies each head's columns of x by the head's own matrix, for subgroups: a lane computes four
// columns of TILE_M rows of a head, which share its loads of the matrix; lanes are side by side
// along the columns, and share loads of x by shuffles. No shared memory.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#define READ_VECTORS
#include "head_matmul.glsl"

ROW_CONSTANT(TILE_M, 8);

BUFFER(0, readonly, x, vec4)
BUFFER(2, , y, vec4)

const uint X_LANES = (TILE_M + SUBGROUP_SIZE - 1) / SUBGROUP_SIZE;  // rows of x that a lane loads

void main() {
#ifdef WEIGHT_GRIDS
  fill_grid();
#endif
  const uint lane = gl_SubgroupInvocationID;
  const uint quads = params.columns / 4, chunks = (quads + SUBGROUP_SIZE - 1) / SUBGROUP_SIZE;
  const uint head = gl_WorkGroupID.y;
  const uint units = (params.rows + TILE_M - 1) / TILE_M * chunks;
  const uint weight_row = params.weight_first + head * params.weight_step;
  for (uint unit = gl_WorkGroupID.x; unit < units; unit += gl_NumWorkGroups.x) {
    const uint first_row = unit / chunks * TILE_M, quad = unit % chunks * SUBGROUP_SIZE + lane;
    // Lanes past the last column repeat it, and rows past the last repeat that: they are not
    // stored.
    const uint column = min(quad, quads - 1) * 4;
    uint x_base[X_LANES];
    [[unroll]] for (uint i = 0; i < X_LANES; ++i) {
      uint row = min(first_row + min(i * SUBGROUP_SIZE + lane, TILE_M - 1), params.rows - 1);
      x_base[i] = (row * params.x_columns + params.x_first + head * params.x_step) / 4;
    }
    vec4 sums[TILE_M];
    [[unroll]] for (uint i = 0; i < TILE_M; ++i) sums[i] = vec4(0);
    uint k = 0;
    do {
      vec4 mine[X_LANES];
      [[unroll]] for (uint i = 0; i < X_LANES; ++i) mine[i] = AT(x, x_base[i] + k / 4);
#ifdef WEIGHT_BLOCKS
      // Each place with code that dequantizes takes long to compile, so there is only one.
      [[dont_unroll]] for (uint e = 0; e < 4; ++e) {
        const uint at = weight_row + (TRANSPOSED == 1 ? k : column) + e;
        const vec4 values = weight_quad(at, TRANSPOSED == 1 ? column : k);
        [[unroll]] for (uint i = 0; i < TILE_M; ++i) {
          vec4 quad = mine[i / SUBGROUP_SIZE];
          if (TILE_M > 1) quad = subgroupShuffle(quad, i % SUBGROUP_SIZE);
          if (TRANSPOSED == 1) {
            sums[i] += quad[e] * values;
          } else {
            sums[i][e] += dot(quad, values);
          }
        }
      }
#else
      vec4 factors[4];  // for each element of x the factors of the four columns
      if (TRANSPOSED == 1) {
        [[unroll]] for (uint e = 0; e < 4; ++e) factors[e] =
            weight_quad(weight_row + k + e, column);
      } else {
        [[unroll]] for (uint j = 0; j < 4; ++j) {
          vec4 values = weight_quad(weight_row + column + j, k);
          [[unroll]] for (uint e = 0; e < 4; ++e) factors[e][j] = values[e];
        }
      }
      [[unroll]] for (uint i = 0; i < TILE_M; ++i) {
        [[unroll]] for (uint e = 0; e < 4; ++e) {
          float value = TILE_M == 1
                            ? mine[0][e]
                            : subgroupShuffle(mine[i / SUBGROUP_SIZE][e], i % SUBGROUP_SIZE);
          sums[i] += value * factors[e];
        }
      }
#endif
      k += 4;
    } while (k < params.depth);
    [[unroll]] for (uint i = 0; i < TILE_M; ++i) {
      const uint row = first_row + i;
      if (row < params.rows && quad < quads) {
        const uint at =
            (row * params.y_columns + params.y_first + head * params.y_step + column) / 4;
        AT(y, at) = ADD == 1 ? AT(y, at) + sums[i] : sums[i];
      }
    }
  }
}
