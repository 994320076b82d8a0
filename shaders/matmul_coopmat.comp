// Matrix units through VK_KHR_cooperative_matrix: f16 operands staged in shared memory, sums in
// f32. f32 activations are rounded to f16 on the way. Each subgroup owns a block of the workgroup's
// tile. The row with 8 x 8 matrices serves to check this file on lavapipe; its tile is small
// because that driver's compiler takes a minute for a large one.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#include "interface.h"
#include "matmul.h"
#include "types.glsl"
#include "matmul_operands.glsl"

ROW_CONSTANT(TILE_M, 64);
ROW_CONSTANT(TILE_N, 64);
ROW_CONSTANT(TILE_K, 32);
ROW_CONSTANT(BLOCK_M, 32);  // rows of a subgroup's block

// Sizes of shared memory; the defaults are for 64 x 64 x 32 and 8 subgroups.
#ifndef MATRIX
#define MATRIX 16
#endif
#ifndef SHARED_QUADS
#define SHARED_QUADS 1280  // (64 + 64) * (32 + 8) / 4
#endif
#ifndef SUBGROUPS
#define SUBGROUPS 8
#endif
shared f16vec4 tiles[SHARED_QUADS];
shared float finished[SUBGROUPS * MATRIX * MATRIX];

#define ACCUMULATOR coopmat<float, gl_ScopeSubgroup, MATRIX, MATRIX, gl_MatrixUseAccumulator>

// Beyond the edges there are zeros, never what memory holds there. Values that f16 cannot hold are
// clamped.
f16vec4 staged_x(uint row, uint k) {
  if (row >= params.rows || k >= params.depth) return f16vec4(0);
  return f16vec4(clamp(x_quad(row, k), -65504.0, 65504.0));
}
f16vec4 staged_w(uint row, uint k) {
  if (row >= params.columns || k >= params.depth) return f16vec4(0);
  return f16vec4(clamp(w_quad(row, k), -65504.0, 65504.0));
}

void main() {
  const uint line = TILE_K / 4 + 2;  // quads per line of a tile, with 16 bytes of skew
  const uint w_tile = TILE_M * line;
  const uint x_loads = TILE_M * TILE_K / 4 / LOCAL_SIZE, w_loads = TILE_N * TILE_K / 4 / LOCAL_SIZE;
  const uint subgroups = LOCAL_SIZE / SUBGROUP_SIZE;
  const uint blocks_m = TILE_M / BLOCK_M;
  const uint block_n = TILE_N * blocks_m / subgroups;
  const uint parts_m = BLOCK_M / MATRIX, parts_n = block_n / MATRIX;

  uint thread = gl_LocalInvocationIndex;
  uint row0 = gl_WorkGroupID.y * TILE_M, column0 = gl_WorkGroupID.x * TILE_N;
  uint block_row = gl_SubgroupID % blocks_m * BLOCK_M;
  uint block_column = gl_SubgroupID / blocks_m * block_n;

  ACCUMULATOR sums[parts_m][parts_n];
  [[unroll]] for (uint i = 0; i < parts_m; ++i) {
    [[unroll]] for (uint j = 0; j < parts_n; ++j) sums[i][j] = ACCUMULATOR(0.0);
  }

  // The next tiles travel from memory to registers while the matrix units work on the current ones.
  f16vec4 next_x[x_loads], next_w[w_loads];
  for (uint k0 = 0; k0 < params.depth + TILE_K; k0 += TILE_K) {
    if (k0 > 0) {
      barrier();
      [[unroll]] for (uint i = 0; i < x_loads; ++i) {
        uint q = i * LOCAL_SIZE + thread;
        tiles[q / (TILE_K / 4) * line + q % (TILE_K / 4)] = next_x[i];
      }
      [[unroll]] for (uint i = 0; i < w_loads; ++i) {
        uint q = i * LOCAL_SIZE + thread;
        tiles[w_tile + q / (TILE_K / 4) * line + q % (TILE_K / 4)] = next_w[i];
      }
      barrier();
    }
    if (k0 < params.depth) {
      [[unroll]] for (uint i = 0; i < x_loads; ++i) {
        uint q = i * LOCAL_SIZE + thread;
        next_x[i] = staged_x(row0 + q / (TILE_K / 4), k0 + q % (TILE_K / 4) * 4);
      }
      [[unroll]] for (uint i = 0; i < w_loads; ++i) {
        uint q = i * LOCAL_SIZE + thread;
        next_w[i] = staged_w(column0 + q / (TILE_K / 4), k0 + q % (TILE_K / 4) * 4);
      }
    }
    if (k0 > 0) {
      [[unroll]] for (uint k = 0; k < TILE_K; k += MATRIX) {
        coopmat<float16_t, gl_ScopeSubgroup, MATRIX, MATRIX, gl_MatrixUseA> xs[parts_m];
        [[unroll]] for (uint i = 0; i < parts_m; ++i) {
          coopMatLoad(xs[i], tiles, (block_row + i * MATRIX) * line + k / 4, line,
                      gl_CooperativeMatrixLayoutRowMajor);
        }
        [[unroll]] for (uint j = 0; j < parts_n; ++j) {
          coopmat<float16_t, gl_ScopeSubgroup, MATRIX, MATRIX, gl_MatrixUseB> ws;
          coopMatLoad(ws, tiles, w_tile + (block_column + j * MATRIX) * line + k / 4, line,
                      gl_CooperativeMatrixLayoutColumnMajor);
          [[unroll]] for (uint i = 0; i < parts_m; ++i) {
            sums[i][j] = coopMatMulAdd(xs[i], ws, sums[i][j]);
          }
        }
      }
    }
  }

  // Which lane holds which element is the driver's secret, so the epilogue goes through shared
  // memory.
  uint mine = gl_SubgroupID * MATRIX * MATRIX;
  [[unroll]] for (uint i = 0; i < parts_m; ++i) {
    [[unroll]] for (uint j = 0; j < parts_n; ++j) {
      coopMatStore(sums[i][j], finished, mine, MATRIX, gl_CooperativeMatrixLayoutRowMajor);
      subgroupBarrier();
      for (uint at = gl_SubgroupInvocationID * 2; at < MATRIX * MATRIX; at += SUBGROUP_SIZE * 2) {
        uint row = row0 + block_row + i * MATRIX + at / MATRIX;
        uint column = column0 + block_column + j * MATRIX + at % MATRIX;
        store_pair(row, column, finished[mine + at], finished[mine + at + 1]);
      }
      subgroupBarrier();
    }
  }
}
