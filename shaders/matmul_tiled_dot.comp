// A tile of y per workgroup, from x in blocks (q8_1) and W in blocks, by integer dot products. A
// step of K is one block of 32: each invocation stages a row of x or of W in shared memory, W as
// bytes, and multiplies THREAD_M x THREAD_N pairs of rows; scales are applied once per block.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "interface.h"
#include "matmul.h"
#include "types.glsl"
#define SPLIT_K
#include "matmul_operands.glsl"

ROW_CONSTANT(TILE_M, 32);  // TILE_M + TILE_N invocations
ROW_CONSTANT(TILE_N, 32);
ROW_CONSTANT(THREAD_M, 4);
ROW_CONSTANT(THREAD_N, 4);  // even

// Rows of x, then rows of W: the integers of the first half of a block, for all rows, then those of
// the second half. Neighbours in a subgroup read neighbouring words.
#ifndef SHARED_ROWS
#define SHARED_ROWS 64  // TILE_M + TILE_N
#endif
shared uvec4 integers[2 * SHARED_ROWS];
// For x the scale and the sums of the integers, for W the scales of both halves or scale and
// minimum.
shared uvec2 scales[SHARED_ROWS];

// Scale and minimum, or both scales, of a group of W.
uvec2 scales_of(uint row_at, uint group) {
  GroupScales all = group_scales(FORMAT, row_at, group);
  bool halves = BLOCKS_HALVES(FORMAT);
  return floatBitsToUint(vec2(all.scale.x, halves ? all.scale.y : all.minimum.x));
}

void main() {
  const uint lines_m = TILE_M / THREAD_M;  // invocations along M
  const uint lines_n = TILE_N / THREAD_N;
  const bool halves = BLOCKS_HALVES(FORMAT);       // each half with a scale
  const bool minima = BLOCKS_OFFSET(FORMAT) == 0;  // a minimum instead
  uint row0 = gl_WorkGroupID.y * TILE_M, column0 = gl_WorkGroupID.x * TILE_N;
  uint thread = gl_LocalInvocationIndex;
  uint thread_m = thread / lines_n, thread_n = thread % lines_n;

  float sums[THREAD_M][THREAD_N];
  [[unroll]] for (uint i = 0; i < THREAD_M; ++i) {
    [[unroll]] for (uint j = 0; j < THREAD_N; ++j) sums[i][j] = 0;
  }

  // Beyond the edges the last row is staged again; its results are not stored.
  bool stages_x = thread < TILE_M;
  uint x_row = min(row0 + thread, params.rows - 1);
  uint column = min(column0 + thread - TILE_M, params.columns - 1);
  // A gated product has all gates first, then their values, so that both of a pair are sums of one
  // invocation.
  uint place = thread - TILE_M;
  if (GATED != 0) place = place % 2 * (TILE_N / 2) + place / 2;
  place = stages_x ? thread : TILE_M + place;
  uint row_at = column * row_words(FORMAT);

  const uvec2 own = own_depth();
  for (uint group = own.x / 32; group < own.y / 32; ++group) {
    if (stages_x) {
      integers[place] = x_integers(x_row, group, 0);
      integers[SHARED_ROWS + place] = x_integers(x_row, group, 1);
      scales[place] = x_scale(x_row, group);
    } else {
      QuadPair pairs[4];
      quad_pairs(FORMAT, row_at, group, group_high(FORMAT, row_at, group), pairs);
      uvec4 first, second;
      [[unroll]] for (uint s = 0; s < 4; ++s) {
        first[s] = factors(FORMAT, pairs[s].first);
        second[s] = factors(FORMAT, pairs[s].second);
      }
      integers[place] = first;
      integers[SHARED_ROWS + place] = second;
      scales[place] = scales_of(row_at, group);
    }
    barrier();

    // The sums of integers start with the share of W's offset.
    int dots[THREAD_M][THREAD_N];
    float x_scales[THREAD_M], x_sums[THREAD_M];
    [[unroll]] for (uint h = 0; h < 2; ++h) {
      uvec4 xs[THREAD_M];
      [[unroll]] for (uint i = 0; i < THREAD_M; ++i) {
        uint at = i * lines_m + thread_m;
        xs[i] = integers[h * SHARED_ROWS + at];
        uvec2 scale_and_sums = scales[at];
        ivec2 halves_of_x = half_sums(scale_and_sums.y);
        x_scales[i] = uintBitsToFloat(scale_and_sums.x);
        int sum = halves ? halves_of_x[h] : halves_of_x.x + halves_of_x.y;
        x_sums[i] = x_scales[i] * float(sum);
        int begin = -offset_left(FORMAT) * sum;
        [[unroll]] for (uint j = 0; j < THREAD_N; ++j) {
          if (h == 0 || halves) dots[i][j] = begin;
        }
      }
      [[unroll]] for (uint j = 0; j < THREAD_N; ++j) {
        uint at = TILE_M + j * lines_n + thread_n;
        uvec4 ws = integers[h * SHARED_ROWS + at];
        vec2 w_scales = uintBitsToFloat(scales[at]);
        [[unroll]] for (uint i = 0; i < THREAD_M; ++i) {
          [[unroll]] for (uint s = 0; s < 4; ++s) dots[i][j] = dot4(ws[s], xs[i][s], dots[i][j]);
          if (halves) {
            sums[i][j] += x_scales[i] * w_scales[h] * float(dots[i][j]);
          } else if (h == 1) {
            sums[i][j] += x_scales[i] * w_scales.x * float(dots[i][j]);
            if (minima) sums[i][j] += w_scales.y * x_sums[i];
          }
        }
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
        uint y_column = column0 + j * lines_n + thread_n;
        if (row < params.rows && y_column < params.columns) store_result(row, y_column, sums[i][j]);
      }
    }
  }
}
