// A tile of y per workgroup, in f16 arithmetic: two products per instruction where the device packs
// halves, and no conversion of operands. An invocation has THREAD_M x THREAD_N sums in f32.
// Products of TILE_K columns of K, which is HALF_SUM_DEPTH, are summed in f16 first; the bounds of
// the conformance suite are derived from that.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#include "interface.h"
#include "matmul.h"
#define DEPTH_BY_4
#define WEIGHT_HALF
#include "types.glsl"
#define SPLIT_K
#include "matmul_operands.glsl"

ROW_CONSTANT(TILE_M, 64);
ROW_CONSTANT(TILE_N, 64);
ROW_CONSTANT(THREAD_M, 8);  // in fours, like THREAD_N
ROW_CONSTANT(THREAD_N, 4);
const uint TILE_K = HALF_SUM_DEPTH;

BUFFER(0, readonly, wide_x, uvec4)
BUFFER(1, readonly, wide_w, uvec4)

// Four neighbouring rows of x, or of W, at one position along K, which runs slowest. A unit of
// padding per line puts the stores of an eight on different banks.
#ifndef SHARED_FOURS
#define SHARED_FOURS 544  // 16 * (16 + 1 + 16 + 1)
#endif
shared f16vec4 tiles[SHARED_FOURS];

void main() {
  const uint lines_m = TILE_M / THREAD_M;  // invocations along M
  const uint lines_n = TILE_N / THREAD_N;
  const uint line_m = TILE_M / 4 + 1, line_n = TILE_N / 4 + 1;
  const uint w_tile = TILE_K * line_m;
  const uint fours_m = THREAD_M / 4, fours_n = THREAD_N / 4;
  uint row0 = gl_WorkGroupID.y * TILE_M, column0 = gl_WorkGroupID.x * TILE_N;
  uint thread = gl_LocalInvocationIndex;
  uint thread_m = thread / lines_n, thread_n = thread % lines_n;

  vec4 sums[THREAD_M][fours_n];
  [[unroll]] for (uint i = 0; i < THREAD_M; ++i) {
    [[unroll]] for (uint j = 0; j < fours_n; ++j) sums[i][j] = vec4(0);
  }

  const uvec2 own = own_depth();
  for (uint k0 = own.x; k0 < own.y; k0 += TILE_K) {
    // Rows beyond the edges repeat the last one, because their results are not stored; beyond the
    // depth there are zeros.
    for (uint q = thread; q < (TILE_M + TILE_N) / 4 * (TILE_K / 8); q += LOCAL_SIZE) {
      uint four = q / (TILE_K / 8), k = q % (TILE_K / 8) * 8;
      bool is_x = four < TILE_M / 4;
      uvec4 eights[4];
      [[unroll]] for (uint i = 0; i < 4; ++i) eights[i] = uvec4(0);
      if (k0 + k < params.depth) {
        if (is_x) {
          [[unroll]] for (uint i = 0; i < 4; ++i) eights[i] =
              AT(wide_x, (min(row0 + four * 4 + i, params.rows - 1) * params.depth + k0 + k) / 8);
        } else {
          [[unroll]] for (uint i = 0; i < 4; ++i) eights[i] = AT(
              wide_w,
              (min(column0 + four * 4 - TILE_M + i, params.columns - 1) * params.depth + k0 + k) /
                  8);
        }
      }
      uint line = is_x ? line_m : line_n;
      uint at = is_x ? four : w_tile + four - TILE_M / 4;
      at += k * line;
      [[unroll]] for (uint e = 0; e < 4; ++e) {
        f16vec2 a = unpackFloat2x16(eights[0][e]), b = unpackFloat2x16(eights[1][e]);
        f16vec2 c = unpackFloat2x16(eights[2][e]), d = unpackFloat2x16(eights[3][e]);
        tiles[at + 2 * e * line] = f16vec4(a.x, b.x, c.x, d.x);
        tiles[at + (2 * e + 1) * line] = f16vec4(a.y, b.y, c.y, d.y);
      }
    }
    barrier();

    f16vec4 parts[THREAD_M][fours_n];
    [[unroll]] for (uint k = 0; k < TILE_K; ++k) {
      f16vec4 xs[fours_m], ws[fours_n];
      [[unroll]] for (uint i = 0; i < fours_m; ++i) xs[i] =
          tiles[k * line_m + i * lines_m + thread_m];
      [[unroll]] for (uint j = 0; j < fours_n; ++j) ws[j] =
          tiles[w_tile + k * line_n + j * lines_n + thread_n];
      [[unroll]] for (uint i = 0; i < THREAD_M; ++i) {
        [[unroll]] for (uint j = 0; j < fours_n; ++j) {
          f16vec4 x = f16vec4(xs[i / 4][i % 4]);
          parts[i][j] = k == 0 ? x * ws[j] : fma(x, ws[j], parts[i][j]);
        }
      }
    }
    [[unroll]] for (uint i = 0; i < THREAD_M; ++i) {
      [[unroll]] for (uint j = 0; j < fours_n; ++j) sums[i][j] += vec4(parts[i][j]);
    }
    barrier();
  }

  [[unroll]] for (uint i = 0; i < THREAD_M; ++i) {
    uint row = row0 + (i / 4 * lines_m + thread_m) * 4 + i % 4;
    [[unroll]] for (uint j = 0; j < fours_n; ++j) {
      uint column = column0 + (j * lines_n + thread_n) * 4;
      store_pair(row, column, sums[i][j].x, sums[i][j].y);
      store_pair(row, column + 2, sums[i][j].z, sums[i][j].w);
    }
  }
}
