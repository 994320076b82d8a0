// A tile of y per workgroup, x and W staged in shared memory, THREAD_M x THREAD_N sums per
// invocation. It serves any device; larger tiles are rows with larger constants.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "interface.h"
#include "matmul.h"
#include "types.glsl"
#define SPLIT_K
#include "matmul_operands.glsl"

ROW_CONSTANT(TILE_M, 32);
ROW_CONSTANT(TILE_N, 32);
ROW_CONSTANT(TILE_K, 16);
ROW_CONSTANT(THREAD_M, 4);
ROW_CONSTANT(THREAD_N, 4);  // even

// K runs slowest; one word of padding per line puts the stores of a quad on different banks.
#ifndef SHARED_FLOATS
#define SHARED_FLOATS 1056  // 16 * (2 * 32 + 2)
#endif
shared float tiles[SHARED_FLOATS];

void main() {
#ifdef WEIGHT_GRIDS
  fill_grid();
#endif
  const uint lines_m = TILE_M / THREAD_M;  // invocations along M
  const uint lines_n = TILE_N / THREAD_N;
  const uint w_tile = TILE_K * (TILE_M + 1);
  uint row0 = gl_WorkGroupID.y * TILE_M, column0 = gl_WorkGroupID.x * TILE_N;
  uint thread = gl_LocalInvocationIndex;
  uint thread_m = thread / lines_n, thread_n = thread % lines_n;

  float sums[THREAD_M][THREAD_N];
  [[unroll]] for (uint i = 0; i < THREAD_M; ++i) {
    [[unroll]] for (uint j = 0; j < THREAD_N; ++j) sums[i][j] = 0;
  }

  const uvec2 own = own_depth();
  for (uint k0 = own.x; k0 < own.y; k0 += TILE_K) {
    // Stage. Beyond the edges there are zeros, never old memory.
    for (uint q = thread; q < TILE_M * TILE_K / 4; q += LOCAL_SIZE) {
      uint row = q / (TILE_K / 4), k = q % (TILE_K / 4) * 4;
      vec4 quad = vec4(0);
      if (row0 + row < params.rows && k0 + k < params.depth) quad = x_quad(row0 + row, k0 + k);
      [[unroll]] for (uint i = 0; i < 4; ++i) tiles[(k + i) * (TILE_M + 1) + row] = quad[i];
    }
    for (uint q = thread; q < TILE_N * TILE_K / 4; q += LOCAL_SIZE) {
      uint column = q / (TILE_K / 4), k = q % (TILE_K / 4) * 4;
      vec4 quad = vec4(0);
      if (column0 + column < params.columns && k0 + k < params.depth) {
        quad = w_quad(column0 + column, k0 + k);
      }
      // A gated product has all gates first, then their values, so that both of a pair are sums of
      // one invocation.
      uint place = GATED != 0 ? column % 2 * (TILE_N / 2) + column / 2 : column;
      [[unroll]] for (uint i = 0; i < 4; ++i) {
        tiles[w_tile + (k + i) * (TILE_N + 1) + place] = quad[i];
      }
    }
    barrier();

    // Multiply. An invocation's rows and columns lie a line apart: neighbours read neighbouring
    // words.
    [[unroll]] for (uint k = 0; k < TILE_K; ++k) {
      float xs[THREAD_M], ws[THREAD_N];
      [[unroll]] for (uint i = 0; i < THREAD_M; ++i) {
        xs[i] = tiles[k * (TILE_M + 1) + i * lines_m + thread_m];
      }
      [[unroll]] for (uint j = 0; j < THREAD_N; ++j) {
        ws[j] = tiles[w_tile + k * (TILE_N + 1) + j * lines_n + thread_n];
      }
      [[unroll]] for (uint i = 0; i < THREAD_M; ++i) {
        [[unroll]] for (uint j = 0; j < THREAD_N; ++j) sums[i][j] += xs[i] * ws[j];
      }
    }
    barrier();
  }

  [[unroll]] for (uint i = 0; i < THREAD_M; ++i) {
    uint row = row0 + i * lines_m + thread_m;
    if (GATED != 0) {
      [[unroll]] for (uint j = 0; j < THREAD_N / 2; ++j) {
        store_pair(row, column0 + (j * lines_n + thread_n) * 2, sums[i][j],
                   sums[i][j + THREAD_N / 2]);
      }
    } else {
      [[unroll]] for (uint j = 0; j < THREAD_N; ++j) {
        uint column = column0 + j * lines_n + thread_n;
        if (row < params.rows && column < params.columns) store_result(row, column, sums[i][j]);
      }
    }
  }
}
