// Lanes along N, ROWS x THREAD_N (an even number) sums per lane in registers, no shared memory and
// no barrier: a form for software drivers. Each lane reads its own rows of W. A value of x must
// reach all lanes as one broadcast scalar, in a way that depends on the driver: as a load at a
// uniform address, or, with SHUFFLE, as a load per lane followed by shuffles from constant lanes. K
// is a multiple of 8. With W_TEXELS, and with X_TEXELS beside SHUFFLE, lanes' own loads go through
// texel buffers: these drivers loop over the lanes for each word of a storage buffer, but load 16
// bytes of a texel buffer with one vector load per lane.
#version 450
#extension GL_GOOGLE_include_directive : require
#ifdef SHUFFLE
#extension GL_KHR_shader_subgroup_shuffle : require
#endif
#include "interface.h"
#include "matmul.h"
#include "types.glsl"
#include "matmul_operands.glsl"
#include "matmul_lanes.h"

ROW_CONSTANT(THREAD_N, 2);  // per lane
#ifndef W_TEXELS
ROW_CONSTANT(WIDE_LOADS, 0);  // 1: W in 16-byte loads, 0: in words
#endif
layout(constant_id = MATMUL_ROWS) const uint ROWS = 16;

const uint STEP = 8;  // along K, per iteration: enough to hide the loop, small enough for registers

// Eight neighbours along K; with a struct the driver computes one address for all of them.
#ifdef ACTIVATION_F16
struct Xs {
  uint words[4];
};
#else
struct Xs {
  float values[8];
};
#endif
#ifndef X_TEXELS
BUFFER(0, readonly, x_step, Xs)
#endif
#ifndef W_TEXELS
#ifdef WEIGHT_HALF
struct Ws {
  uint words[4];
};
BUFFER(1, readonly, w_wide, uvec4)
#else
struct Ws {
  float values[8];
};
#endif
BUFFER(1, readonly, w_step, Ws)
#endif

#ifndef ACTIVATION_F16
layout(constant_id = MATMUL_STORE_QUADS) const uint STORE_QUADS = 0;
BUFFER(Y_BUFFER, , y_quads, vec4)

// Stores four finished values. Drivers that store lane after lane then have one loop over the lanes
// instead of four.
void store_quad(uint row, uint column, vec4 value) {
  uint at = (row * params.row_stride + params.first_column + column) / 4;
  if (ACCUMULATE != 0) value += AT(y_quads, at);
  AT(y_quads, at) = value;
}
#else
const uint STORE_QUADS = 0;
void store_quad(uint row, uint column, vec4 value) {}
#endif

void load_w(uint at, out float values[STEP]) {
#if defined(W_TEXELS) && defined(WEIGHT_HALF)
  const uvec4 wide = TEXEL(w, at / 8);
  [[unroll]] for (uint i = 0; i < 4; ++i) {
    const vec2 pair = unpack_weight2(wide[i]);
    values[2 * i] = pair.x;
    values[2 * i + 1] = pair.y;
  }
#elif defined(W_TEXELS)
  [[unroll]] for (uint i = 0; i < 2; ++i) {
    const vec4 wide = uintBitsToFloat(TEXEL(w, at / 4 + i));
    [[unroll]] for (uint c = 0; c < 4; ++c) values[4 * i + c] = wide[c];
  }
#elif defined(WEIGHT_HALF)
  uvec4 wide = WIDE_LOADS != 0 ? AT(w_wide, at / 8) : uvec4(0);
  [[unroll]] for (uint i = 0; i < 4; ++i) {
    vec2 pair = unpack_weight2(WIDE_LOADS != 0 ? wide[i] : AT(w_step, at / 8).words[i]);
    values[2 * i] = pair.x;
    values[2 * i + 1] = pair.y;
  }
#else
  [[unroll]] for (uint i = 0; i < 2; ++i) {
    vec4 wide = WIDE_LOADS != 0 ? AT(w, at / 4 + i) : vec4(0);
    [[unroll]] for (uint c = 0; c < 4; ++c) {
      values[4 * i + c] = WIDE_LOADS != 0 ? wide[c] : AT(w_step, at / 8).values[4 * i + c];
    }
  }
#endif
}

void main() {
  uint lane = gl_LocalInvocationID.x;
  uint row0 = gl_WorkGroupID.y * ROWS;

  // Columns of a lane are neighbours: it can store several at once, and both columns of a gated
  // pair are its own. Beyond the edges the last rows and columns are computed again. Where y is
  // only written, they are stored again too, which costs less than conditions.
  const bool stores_again = STORE_QUADS != 0 && ACCUMULATE == 0 && GATED == 0;
  const uint own_column = (gl_WorkGroupID.x * LOCAL_SIZE + lane) * THREAD_N;
  const uint column0 =
      stores_again ? min(own_column, (params.columns - 1) / THREAD_N * THREAD_N) : own_column;
  uint w_at[THREAD_N];
  [[unroll]] for (uint j = 0; j < THREAD_N; ++j) {
    w_at[j] = min(column0 + j, params.columns - 1) * params.depth;
  }
  float sums[ROWS][THREAD_N];
  [[unroll]] for (uint i = 0; i < ROWS; ++i) {
    [[unroll]] for (uint j = 0; j < THREAD_N; ++j) sums[i][j] = 0;
  }

#ifdef SHUFFLE
  // One load takes a quad by STEP / 4 lanes for each of several rows.
  const uint lanes_per_row = STEP / 4, rows_per_load = SUBGROUP_SIZE / lanes_per_row;
  const uint loads = (ROWS + rows_per_load - 1) / rows_per_load;
  uint x_row[loads];
  [[unroll]] for (uint i = 0; i < loads; ++i) {
    x_row[i] = min(row0 + i * rows_per_load + lane / lanes_per_row, params.rows - 1);
  }
#else
  uint x_at[ROWS];
  [[unroll]] for (uint i = 0; i < ROWS; ++i) {
    x_at[i] = min(row0 + i, params.rows - 1) * params.depth;
  }
#endif

  for (uint k = 0; k < params.depth; k += STEP) {
    float ws[THREAD_N][STEP];
    [[unroll]] for (uint j = 0; j < THREAD_N; ++j) load_w(w_at[j] + k, ws[j]);
#ifdef SHUFFLE
    vec4 xs[loads];
    [[unroll]] for (uint i = 0; i < loads; ++i) {
      xs[i] = x_quad(x_row[i], k + lane % lanes_per_row * 4);
    }
#endif
    [[unroll]] for (uint i = 0; i < ROWS; ++i) {
      [[unroll]] for (uint u = 0; u < STEP; ++u) {
#ifdef SHUFFLE
        float x_value = subgroupShuffle(xs[i / rows_per_load][u % 4],
                                        i % rows_per_load * lanes_per_row + u / 4);
#elif defined(ACTIVATION_F16)
        float x_value = unpackHalf2x16(AT(x_step, (x_at[i] + k) / 8).words[u / 2])[u % 2];
#else
        float x_value = AT(x_step, (x_at[i] + k) / 8).values[u];
#endif
        [[unroll]] for (uint j = 0; j < THREAD_N; ++j) sums[i][j] += x_value * ws[j][u];
      }
    }
  }

  // The epilogue. Loads are expensive: a column's bias is read once for all rows.
  [[unroll]] for (uint j = 0; j < THREAD_N; ++j) {
    uint column = min(column0 + j, params.columns - 1);
    float added = HAS_BIAS != 0 ? AT(bias, params.first_bias + column) : 0.0;
    bool linear = GATED != 0 && j % 2 == 1;
    [[unroll]] for (uint i = 0; i < ROWS; ++i) {
      if (HAS_BIAS != 0) sums[i][j] += added;
      if (!linear) sums[i][j] = activate(sums[i][j], ACTIVATION_FUNCTION);
    }
  }
  const uint last = THREAD_N - 1;
  const uint width = STORE_QUADS != 0 ? 4 : GATED != 0 ? 2 : 1;
  [[unroll]] for (uint i = 0; i < ROWS; ++i) {
    [[unroll]] for (uint j = 0; j < THREAD_N; j += width) {
      const uint own_row = row0 + i, column = column0 + j;
      const uint row = stores_again ? min(own_row, params.rows - 1) : own_row;
      if (stores_again || (row < params.rows && column < params.columns)) {
        if (STORE_QUADS != 0) {
          store_quad(row, column,
                     vec4(sums[i][j], sums[i][min(j + 1, last)], sums[i][min(j + 2, last)],
                          sums[i][min(j + 3, last)]));
        } else if (GATED != 0) {
          store_finished(row, column / 2, sums[i][j] * sums[i][min(j + 1, last)]);
        } else {
          store_finished(row, column, sums[i][j]);
        }
      }
    }
  }
}
