// matmul_lanes.comp for weights in blocks: lanes along N, ROWS x THREAD_N sums per lane in
// registers; a value of x reaches all lanes as one broadcast scalar. A group of 32 elements is read
// once for all rows: several rows use it dequantized, a single row multiplies the quantized
// integers and scales their sum.
#version 450
#extension GL_GOOGLE_include_directive : require
#ifdef SHUFFLE
#extension GL_KHR_shader_subgroup_shuffle : require
#endif
#include "interface.h"
#include "matmul.h"
#include "types.glsl"
#include "matmul_operands.glsl"
#include "matmul_segments.glsl"

ROW_CONSTANT(THREAD_N, 2);    // per lane; even
ROW_CONSTANT(MOST_WORDS, 1);  // words of the four in a group, per iteration
layout(constant_id = MATMUL_ROWS) const uint ROWS = 16;

// The lanes of a subgroup load the quads of x of at least one row.
const uint WORDS = MOST_WORDS > 2 && SUBGROUP_SIZE < 8 ? 2 : MOST_WORDS;

// Column of a lane's j-th sum. Both columns of a gated pair belong to one lane.
uint column_of(uint first, uint j, uint lane) {
  return GATED != 0 ? first + (j / 2 * LOCAL_SIZE + lane) * 2 + j % 2
                    : first + j * LOCAL_SIZE + lane;
}

#ifndef SHUFFLE
struct Xs {
  float values[4];
};
BUFFER(0, readonly, x_step, Xs)
#endif

void multiply(uint format, uint first, uint end, uint at, uint group_of_columns) {
  uint column0 = first + group_of_columns * THREAD_N * LOCAL_SIZE;
  uint lane = gl_LocalInvocationID.x;
  uint row0 = gl_WorkGroupID.y * ROWS;

  // Beyond the edges the last row and column are computed again, and not stored.
  uint w_at[THREAD_N];
  [[unroll]] for (uint j = 0; j < THREAD_N; ++j) {
    w_at[j] = at + (min(column_of(column0, j, lane), end - 1) - first) * row_words(format);
  }
  float sums[ROWS][THREAD_N];
  [[unroll]] for (uint i = 0; i < ROWS; ++i) {
    [[unroll]] for (uint j = 0; j < THREAD_N; ++j) sums[i][j] = 0;
  }

#ifdef SHUFFLE
  // One load takes the quads of an iteration for each of several rows.
  const uint lanes_per_row = 2 * WORDS, rows_per_load = SUBGROUP_SIZE / lanes_per_row;
  const uint loads = (ROWS + rows_per_load - 1) / rows_per_load;
  uint mine = lane % lanes_per_row;
  uint x_row[loads], x_quad_at = mine % WORDS + mine / WORDS * 4;
  [[unroll]] for (uint i = 0; i < loads; ++i) {
    x_row[i] = min(row0 + i * rows_per_load + lane / lanes_per_row, params.rows - 1);
  }
#else
  uint x_at[ROWS];
  [[unroll]] for (uint i = 0; i < ROWS; ++i) {
    x_at[i] = min(row0 + i, params.rows - 1) * params.depth / 4;
  }
#endif

  for (uint group = 0; group < params.depth / 32; ++group) {
    GroupScales scales[THREAD_N];
    uvec2 high[THREAD_N];
    [[unroll]] for (uint j = 0; j < THREAD_N; ++j) {
      scales[j] = group_scales(format, w_at[j], group);
      high[j] = group_high(format, w_at[j], group);
    }
    // For a single row: sums of integers times x, by their byte of the word, and sums of x alone.
    vec4 parts[THREAD_N][2];
    float x_sums[2];
    [[unroll]] for (uint h = 0; h < 2; ++h) {
      x_sums[h] = 0;
      [[unroll]] for (uint j = 0; j < THREAD_N; ++j) parts[j][h] = vec4(0);
    }

    // For iterations over the whole group, 16 bytes at a time.
    QuadPair wide[THREAD_N][4];
    if (WORDS == 4) {
      [[unroll]] for (uint j = 0; j < THREAD_N; ++j) {
        quad_pairs(format, w_at[j], group, high[j], wide[j]);
      }
    }
    for (uint s = 0; s < 4; s += WORDS) {
#ifdef SHUFFLE
      vec4 xs[loads];
      [[unroll]] for (uint i = 0; i < loads; ++i) {
        xs[i] = x_quad(x_row[i], group * 32 + (s + x_quad_at) * 4);
      }
#endif
      [[unroll]] for (uint u = 0; u < WORDS; ++u) {
        QuadPair pairs[THREAD_N];
        [[unroll]] for (uint j = 0; j < THREAD_N; ++j) {
          if (WORDS == 4) {
            pairs[j] = wide[j][u];
          } else {
            pairs[j] = quad_pair(format, w_at[j], group, s + u, high[j]);
          }
        }
        [[unroll]] for (uint h = 0; h < 2; ++h) {
          vec4 ws[THREAD_N];
          [[unroll]] for (uint j = 0; j < THREAD_N; ++j) {
            ws[j] = quad_quants(format, h == 0 ? pairs[j].first : pairs[j].second);
            if (ROWS > 1) ws[j] = ws[j] * quad_scale(scales[j].scale[h]) + scales[j].minimum[h];
          }
          // Only types with separate scales for the halves keep two sums.
          const uint part = BLOCKS_HALVES(format) ? h : 0;
          [[unroll]] for (uint i = 0; i < ROWS; ++i) {
            [[unroll]] for (uint c = 0; c < 4; ++c) {
#ifdef SHUFFLE
              float x_value = subgroupShuffle(xs[i / rows_per_load][c],
                                              i % rows_per_load * lanes_per_row + h * WORDS + u);
#else
              float x_value = AT(x_step, x_at[i] + group * 8 + h * 4 + s + u).values[c];
#endif
              if (ROWS == 1) x_sums[part] += x_value;
              [[unroll]] for (uint j = 0; j < THREAD_N; ++j) {
                if (ROWS == 1) {
                  parts[j][part][c] += x_value * ws[j][c];
                } else {
                  sums[i][j] += x_value * ws[j][c];
                }
              }
            }
          }
        }
      }
    }
    if (ROWS == 1) {
      [[unroll]] for (uint j = 0; j < THREAD_N; ++j) {
        sums[0][j] +=
            dot(parts[j][0], quad_scale(scales[j].scale.x)) + x_sums[0] * scales[j].minimum.x;
        if (BLOCKS_HALVES(format)) {
          sums[0][j] +=
              dot(parts[j][1], quad_scale(scales[j].scale.y)) + x_sums[1] * scales[j].minimum.y;
        }
      }
    }
  }

  [[unroll]] for (uint i = 0; i < ROWS; ++i) {
    if (GATED != 0) {
      [[unroll]] for (uint j = 0; j < THREAD_N; j += 2) {
        store_pair(row0 + i, column_of(column0, j, lane), sums[i][j], sums[i][j + 1]);
      }
    } else {
      [[unroll]] for (uint j = 0; j < THREAD_N; ++j) {
        uint row = row0 + i, column = column_of(column0, j, lane);
        if (row < params.rows && column < end) store_result(row, column, sums[i][j]);
      }
    }
  }
}

void main() { multiply_segment(THREAD_N * LOCAL_SIZE); }
