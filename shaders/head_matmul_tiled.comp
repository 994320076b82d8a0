// Multiplies each head's columns of x by the head's own matrix, for hardware: a workgroup computes
// 64 columns of TILE_M rows of a head from tiles of x and of the matrix in shared memory, where
// both orientations of a matrix look alike. With few rows an invocation has one row: then this is a
// matrix-vector product whose loads are as dense as the matrix.
#version 450
#extension GL_GOOGLE_include_directive : require
#define READ_VECTORS
#include "head_matmul.glsl"

ROW_CONSTANT(TILE_M, 32);   // 8 * THREAD_M
ROW_CONSTANT(THREAD_M, 4);  // at most 4

BUFFER(0, readonly, x, vec4)
BUFFER(2, , y, vec4)

const uint kDepth = 16;  // depth of the tiles
const uint kQuads = 16;  // quads of columns
const uint kMaxRows = 32;
// Lines are skewed against bank conflicts.
const uint kLine = kQuads + 1, kXLine = kDepth / 4 + 1;
shared vec4 weight_tile[kDepth * kLine];
shared vec4 x_tile[kMaxRows * kXLine];

void main() {
#ifdef WEIGHT_GRIDS
  fill_grid();
#endif
  const uint thread = gl_LocalInvocationIndex, lane = thread % kQuads;
  const uint row0 = thread / kQuads * THREAD_M;
  const uint head = gl_WorkGroupID.y;
  const uint quads = params.columns / 4, chunks = (quads + kQuads - 1) / kQuads;
  const uint units = (params.rows + TILE_M - 1) / TILE_M * chunks;
  const uint weight_row = params.weight_first + head * params.weight_step;
  for (uint unit = gl_WorkGroupID.x; unit < units; unit += gl_NumWorkGroups.x) {
    const uint first_row = unit / chunks * TILE_M, first_quad = unit % chunks * kQuads;
    vec4 sums[THREAD_M];
    [[unroll]] for (uint i = 0; i < THREAD_M; ++i) sums[i] = vec4(0);
    for (uint k = 0; k < params.depth; k += kDepth) {
      barrier();
      for (uint i = thread; i < TILE_M * (kDepth / 4); i += LOCAL_SIZE) {
        const uint row = min(first_row + i / (kDepth / 4), params.rows - 1);
        const uint at = k + i % (kDepth / 4) * 4;
        const uint base = row * params.x_columns + params.x_first + head * params.x_step;
        vec4 values = AT(x, (base + min(at, params.depth - 4)) / 4);
        x_tile[i / (kDepth / 4) * kXLine + i % (kDepth / 4)] = at < params.depth ? values : vec4(0);
      }
      // Elements past the last column or the depth repeat the last: they are not stored, or meet
      // zeros.
      for (uint i = thread; i < kDepth * kQuads; i += LOCAL_SIZE) {
        if (TRANSPOSED == 1) {
          const uint at = min(k + i / kQuads, params.depth - 1);
          const uint quad = min(first_quad + i % kQuads, quads - 1);
          weight_tile[i / kQuads * kLine + i % kQuads] = weight_quad(weight_row + at, quad * 4);
        } else {
          const uint n = i / (kDepth / 4), quad = i % (kDepth / 4);
          const uint column = min(first_quad * 4 + n, params.columns - 1);
          vec4 values = weight_quad(weight_row + column, min(k + quad * 4, params.depth - 4));
          [[unroll]] for (uint e = 0; e < 4; ++e) {
            weight_tile[(quad * 4 + e) * kLine + n / 4][n % 4] = values[e];
          }
        }
      }
      barrier();
      [[unroll]] for (uint quad = 0; quad < kDepth / 4; ++quad) {
        vec4 values[THREAD_M];
        [[unroll]] for (uint i = 0; i < THREAD_M; ++i) values[i] =
            x_tile[(row0 + i) * kXLine + quad];
        [[unroll]] for (uint e = 0; e < 4; ++e) {
          vec4 factor = weight_tile[(quad * 4 + e) * kLine + lane];
          [[unroll]] for (uint i = 0; i < THREAD_M; ++i) sums[i] += values[i][e] * factor;
        }
      }
    }
    [[unroll]] for (uint i = 0; i < THREAD_M; ++i) {
      const uint row = first_row + row0 + i, quad = first_quad + lane;
      if (row < params.rows && quad < quads) {
        const uint at = (row * params.y_columns + params.y_first + head * params.y_step) / 4 + quad;
        AT(y, at) = ADD == 1 ? AT(y, at) + sums[i] : sums[i];
      }
    }
  }
}
