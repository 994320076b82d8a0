// Products on matrix units: operands staged in shared memory as f16, sums in f32. f32 activations
// are rounded to f16 while staged. Rows for bf16 weights use bf16 operands, which have the range of
// f32 and 8 bits: weights are unchanged, and no activation is too large. Each subgroup owns a block
// of the workgroup's tile. Rows with PLAIN_FRAGMENTS run the same code without matrix units, for
// the conformance suite (include/fragments.glsl).
#version 450
#extension GL_GOOGLE_include_directive : require
#ifndef PLAIN_FRAGMENTS
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#ifdef WEIGHT_BF16
#extension GL_EXT_bfloat16 : require
#endif
#endif
#include "interface.h"
#include "matmul.h"
#include "types.glsl"
#include "whole_tiles.glsl"
#define SPLIT_K
#include "matmul_operands.glsl"
// Two tiles with lines of four eights plus one; the default is for 64 x 64 x 32.
#ifndef SHARED_EIGHTS
#define SHARED_EIGHTS 640
#endif
#include "fragments.glsl"

ROW_CONSTANT(TILE_M, 64);
ROW_CONSTANT(TILE_N, 64);
ROW_CONSTANT(TILE_K, 32);
ROW_CONSTANT(BLOCK_M, 32);  // rows of a subgroup's block

#ifdef ACTIVATION_F16
BUFFER(0, readonly, wide_x, uvec4)
uvec4 x_eight(uint row, uint k) { return AT(wide_x, (row * params.depth + k) / 8); }
#else
uvec4 x_eight(uint row, uint k) { return pack_eight(x_quad(row, k), x_quad(row, k + 4)); }
#endif

#ifdef WEIGHT_BLOCKS
uvec4 w_eight(uint row, uint k) {
  vec4 low, high;
  block_eight(row, k, low, high);
  return pack_eight(low, high);
}
#else
BUFFER(1, readonly, wide_w, uvec4)
uvec4 w_eight(uint row, uint k) {
  uvec4 eight = AT(wide_w, (row * params.depth + k) / 8);
#ifdef WEIGHT_BF16
  return eight;
#else
  return FORMAT == 1 ? pack_eight(unpack_weight4(eight.xy), unpack_weight4(eight.zw)) : eight;
#endif
}
#endif

// The line of x or W for `line` of a tile. Past the end of the matrix it is the last line; results
// of these are not stored.
uint x_line(uint line) { return WHOLE_ROWS ? line : min(line, params.rows - 1); }
uint w_line(uint line) { return WHOLE_COLUMNS ? line : min(line, params.columns - 1); }

void main() {
  const uint eights = TILE_K / 8;          // per line of a tile
  const uint line = eights + 1;            // skewed by 16 bytes
  const uint w_tile = TILE_M * line;       // start of the tile of W
  const uint lines = LOCAL_SIZE / eights;  // lines that the workgroup loads at a time
  const uint x_loads = TILE_M / lines, w_loads = TILE_N / lines;
  const uint subgroups = LOCAL_SIZE / LANES;
  const uint blocks_m = TILE_M / BLOCK_M;
  const uint block_n = TILE_N * blocks_m / subgroups;
  const uint parts_m = BLOCK_M / FRAGMENT_M, parts_n = block_n / FRAGMENT_N;

  uint thread = gl_LocalInvocationIndex;
  uint row0 = gl_WorkGroupID.y * TILE_M, column0 = gl_WorkGroupID.x * TILE_N;
  uint block_row = SUBGROUP % blocks_m * BLOCK_M;
  uint block_column = SUBGROUP / blocks_m * block_n;

  FRAGMENT_SUM sums[parts_m][parts_n];
  FRAGMENT_LOOP for (uint i = 0; i < parts_m; ++i) {
    FRAGMENT_LOOP for (uint j = 0; j < parts_n; ++j) sums[i][j] = ZERO_SUM;
  }

  // The next tiles are loaded into registers while the matrix units work on the current ones. An
  // invocation loads the same eight of several lines. Beyond the depth there are zeros.
  uvec4 next_x[x_loads], next_w[w_loads];
  uint own_line = thread / eights, own_eight = thread % eights;
#define LOAD_TILES(K0)                                                       \
  {                                                                          \
    uint k = K0 + own_eight * 8;                                             \
    if (WHOLE_DEPTH || k < params.depth) {                                   \
      FRAGMENT_LOOP for (uint i = 0; i < x_loads; ++i) {                     \
        next_x[i] = x_eight(x_line(row0 + i * lines + own_line), k);         \
      }                                                                      \
      FRAGMENT_LOOP for (uint i = 0; i < w_loads; ++i) {                     \
        next_w[i] = w_eight(w_line(column0 + i * lines + own_line), k);      \
      }                                                                      \
    } else {                                                                 \
      FRAGMENT_LOOP for (uint i = 0; i < x_loads; ++i) next_x[i] = uvec4(0); \
      FRAGMENT_LOOP for (uint i = 0; i < w_loads; ++i) next_w[i] = uvec4(0); \
    }                                                                        \
  }
  const uvec2 own = own_depth();
  LOAD_TILES(own.x);
  for (uint k0 = own.x; k0 < own.y; k0 += TILE_K) {
    barrier();
    FRAGMENT_LOOP for (uint i = 0; i < x_loads; ++i) {
      operands[(i * lines + own_line) * line + own_eight] = next_x[i];
    }
    FRAGMENT_LOOP for (uint i = 0; i < w_loads; ++i) {
      operands[w_tile + (i * lines + own_line) * line + own_eight] = next_w[i];
    }
    barrier();
    if (k0 + TILE_K < own.y) LOAD_TILES(k0 + TILE_K);
    FRAGMENT_LOOP for (uint part = 0; part < TILE_K; part += FRAGMENT_K) {
      FRAGMENT_A xs[parts_m];
      FRAGMENT_LOOP for (uint i = 0; i < parts_m; ++i) {
        LOAD_A(xs[i], (block_row + i * FRAGMENT_M) * line + part / 8, line);
      }
      FRAGMENT_LOOP for (uint j = 0; j < parts_n; ++j) {
        FRAGMENT_B ws;
        LOAD_B_TRANSPOSED(ws, w_tile + (block_column + j * FRAGMENT_N) * line + part / 8, line);
        FRAGMENT_LOOP for (uint i = 0; i < parts_m; ++i) MULTIPLY_ADD(xs[i], ws, sums[i][j]);
      }
    }
  }

  // Only the driver knows which lane holds which element, so the epilogue goes through the shared
  // memory of the tiles: FRAGMENT_M rows of each block at a time. Every loop is unrolled: compilers
  // do not unroll around a loop that stays, and then indexed sums are not registers.
  const uint fours = block_n / 4;  // per row
  uint mine = SUBGROUP * FRAGMENT_M * (fours + 1);
  barrier();
  FRAGMENT_LOOP for (uint i = 0; i < parts_m; ++i) {
    FRAGMENT_LOOP for (uint j = 0; j < parts_n; ++j) {
      STORE_SUM(sums[i][j], mine + j * (FRAGMENT_N / 4), fours + 1);
    }
    FRAGMENT_BARRIER();
    FRAGMENT_LOOP for (uint step = 0; step < FRAGMENT_M * fours / LANES; ++step) {
      uint at = step * LANES + LANE;
      uint row = row0 + block_row + i * FRAGMENT_M + at / fours;
      uint column = column0 + block_column + at % fours * 4;
      vec4 four = uintBitsToFloat(operands[mine + at / fours * (fours + 1) + at % fours]);
      store_pair(row, column, four.x, four.y);
      store_pair(row, column + 2, four.z, four.w);
    }
    FRAGMENT_BARRIER();
  }
}
