// Integer products on matrix units: x in blocks (q8_1) and W in blocks, both staged in shared
// memory as signed bytes. A step of K is one block of 32, whose integer sums are exact; they are
// added to f32 sums times a scale for each row and one for each column. Tiles, subgroups and
// epilogue are those of matmul_coopmat.comp.
#version 450
#extension GL_GOOGLE_include_directive : require
#ifndef PLAIN_FRAGMENTS
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_EXT_shader_explicit_arithmetic_types_int8 : require
#endif
#include "interface.h"
#include "matmul.h"
#include "types.glsl"
#include "whole_tiles.glsl"
#define SPLIT_K
#include "matmul_operands.glsl"
// For 64 x 64: the tiles and their factors are 448 units, the epilogue's rows up to 576.
#ifndef SHARED_EIGHTS
#define SHARED_EIGHTS 576
#endif
#include "fragments.glsl"
#include "integer_fragments.glsl"

ROW_CONSTANT(TILE_M, 64);
ROW_CONSTANT(TILE_N, 64);
ROW_CONSTANT(BLOCK_M, 32);  // rows of a subgroup's block

// A line of x or W in shared memory: the halves of a block, 16 integers each, and 16 bytes of
// padding, so that lines of neighbouring lanes are in different banks.
const uint LINE = 3;
// Types with a scale for each half multiply the halves in two passes. A fragment as deep as a block
// then takes x with zeros in place of one half: the zeros are between the halves in memory, so that
// the fragment begins with the first half or with the zeros.
const bool HALVES = BLOCKS_HALVES(FORMAT);
const uint X_SECOND = HALVES && FRAGMENT_K == 32 ? 2 : 1;
const uint PASSES = HALVES ? 2 : 1;
const uint STEPS = HALVES || FRAGMENT_K == 32 ? 1 : 2;  // fragments along K in a pass
const bool MINIMA = BLOCKS_OFFSET(FORMAT) == 0;

// Layout of shared memory: after the tiles the factors, four per unit: for x the scales, and the
// sums of a block times its scale; for W the scales, and those of second halves or the minima.
const uint W_TILE = TILE_M * LINE;
const uint X_SCALES = (TILE_M + TILE_N) * LINE;
const uint X_SUMS = X_SCALES + TILE_M / 4;
const uint W_SCALES = X_SUMS + TILE_M / 4;
const uint W_SECONDS = W_SCALES + TILE_N / 4;

// Subtracts the offset from four integers of W, which makes them signed. Except with an offset of
// 128 none is above 63, so a bit set above it keeps the borrow within the byte.
uint centered(uint bytes) {
  if (BLOCKS_OFFSET(FORMAT) == 128) return bytes ^ 0x80808080u;
  return (bytes | 0x80808080u) - BLOCKS_OFFSET(FORMAT) * 0x01010101u ^ 0x80808080u;
}

// The integers of half a group of W: quads s or s + 4 of its words s (blocks.glsl).
uvec4 w_integers(uint row_at, uint group, uint half_of_it) {
  uint at = row_at + group * BLOCKS_VALUE_BITS(FORMAT);
  uvec4 words;
  if (BLOCKS_VALUE_BITS(FORMAT) == 2) {
    words = uvec2(AT(blocks, at), AT(blocks, at + 1)).xxyy;
    words = words >> uvec4(0, 4, 0, 4) + 2 * half_of_it & 0x03030303u;
  } else {
    words = AT(wide_blocks, at / 4 + (BLOCKS_VALUE_BITS(FORMAT) == 8 ? half_of_it : 0));
  }
  if (BLOCKS_VALUE_BITS(FORMAT) == 4) words = words >> 4 * half_of_it & 0x0f0f0f0fu;
  if (BLOCKS_CODE(FORMAT) != BLOCKS_INTEGERS) {
    [[unroll]] for (uint s = 0; s < 4; ++s) words[s] = decode(FORMAT, words[s]);
  }
  if (BLOCKS_HIGH_BITS(FORMAT) != 0) {
    uint high_at = row_at + BLOCKS_HIGH_AT(FORMAT, params.depth);
    bool one = BLOCKS_HIGH_BITS(FORMAT) == 1;
    uint high = AT(blocks, high_at + (one ? group : group * 2 + half_of_it));
    if (one) high >>= 4 * half_of_it;
    // Not a product with the bits: SPIRV-Tools of 2023 fold a product of vectors into an invalid
    // module.
    uvec4 shifts = one ? uvec4(0, 1, 2, 3) : uvec4(0, 2, 4, 6);
    words |= (uvec4(high) >> shifts & (one ? 0x01010101u : 0x03030303u))
             << BLOCKS_VALUE_BITS(FORMAT);
  }
  if (BLOCKS_OFFSET(FORMAT) == 0) return words;
  [[unroll]] for (uint s = 0; s < 4; ++s) words[s] = centered(words[s]);
  return words;
}

// The factors of a block of x: its scale, or the factor of W's minima; and of a group of W: its
// scale, or that of the second half or the minimum.
float x_factor(uint row, uint group, bool second) {
  uvec2 scale_and_sums = x_scale(row, group);
  ivec2 sums = half_sums(scale_and_sums.y);
  float scale = uintBitsToFloat(scale_and_sums.x);
  return second ? scale * float(sums.x + sums.y) : scale;
}
float w_factor(uint row_at, uint group, bool second) {
  GroupScales all = group_scales(FORMAT, row_at, group);
  return second ? HALVES ? all.scale.y : all.minimum.x : all.scale.x;
}

// The line of x or W for `line` of a tile. Past the end of the matrix it is the last line; results
// of these are not stored.
uint x_line(uint line) { return WHOLE_ROWS ? line : min(line, params.rows - 1); }
uint w_line(uint line) { return WHOLE_COLUMNS ? line : min(line, params.columns - 1); }

void store_factor(uint at, uint line, float factor) {
  operands[at + line / 4][line % 4] = floatBitsToUint(factor);
}

void main() {
  const uint lines = LOCAL_SIZE / 2;  // lines that the workgroup loads at a time
  const uint x_loads = (TILE_M + lines - 1) / lines, w_loads = TILE_N / lines;
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

  // The next blocks are loaded into registers while the matrix units work on the current ones. An
  // invocation loads the same half of several lines, and with the first half the scale.
  uvec4 next_x[x_loads], next_w[w_loads];
  float next_x_factor[x_loads], next_w_factor[w_loads];
  uint own_line = thread / 2, own_half = thread % 2;
  bool second = own_half != 0;
  bool loads_x = lines <= TILE_M || own_line < TILE_M;
  const bool masked = X_SECOND == 2;
  if (masked) {
    FRAGMENT_LOOP for (uint i = 0; i < x_loads; ++i) {
      if (loads_x) operands[(i * lines + own_line) * LINE + 1] = uvec4(0);
    }
  }
#define LOAD_BLOCKS(GROUP)                                                      \
  {                                                                             \
    FRAGMENT_LOOP for (uint i = 0; i < x_loads; ++i) {                          \
      uint row = x_line(row0 + i * lines + own_line);                           \
      if (loads_x) next_x[i] = x_integers(row, GROUP, own_half);                \
      if (loads_x) next_x_factor[i] = x_factor(row, GROUP, second);             \
    }                                                                           \
    FRAGMENT_LOOP for (uint i = 0; i < w_loads; ++i) {                          \
      uint row_at = w_line(column0 + i * lines + own_line) * row_words(FORMAT); \
      next_w[i] = w_integers(row_at, GROUP, own_half);                          \
      next_w_factor[i] = w_factor(row_at, GROUP, second);                       \
    }                                                                           \
  }
  const uvec2 own = own_depth() / 32;
  LOAD_BLOCKS(own.x);
  for (uint group = own.x; group < own.y; ++group) {
    barrier();
    FRAGMENT_LOOP for (uint i = 0; i < x_loads; ++i) {
      uint line = i * lines + own_line;
      if (loads_x) operands[line * LINE + own_half * X_SECOND] = next_x[i];
      if (loads_x) store_factor(second ? X_SUMS : X_SCALES, line, next_x_factor[i]);
    }
    FRAGMENT_LOOP for (uint i = 0; i < w_loads; ++i) {
      uint line = i * lines + own_line;
      operands[W_TILE + line * LINE + own_half] = next_w[i];
      store_factor(second ? W_SECONDS : W_SCALES, line, next_w_factor[i]);
    }
    barrier();
    if (group + 1 < own.y) LOAD_BLOCKS(group + 1);

    // The loop must stay: when it is unrolled, the compilers for Intel's GPUs move all loads before
    // the products, and spill up to 67 registers.
    [[dont_unroll]] for (uint pass = 0; pass < PASSES; ++pass) {
      INTEGERS_A xs[parts_m][STEPS];
      FRAGMENT_FACTORS x_scales[parts_m];
      FRAGMENT_LOOP for (uint i = 0; i < parts_m; ++i) {
        uint line = block_row + i * FRAGMENT_M;
        FRAGMENT_LOOP for (uint s = 0; s < STEPS; ++s) {
          LOAD_INTEGERS_A(xs[i][s], line * LINE + pass + s, LINE);
        }
        LOAD_FACTORS(x_scales[i], X_SCALES + line / 4);
      }
      FRAGMENT_LOOP for (uint j = 0; j < parts_n; ++j) {
        uint line = block_column + j * FRAGMENT_N;
        INTEGERS_B ws[STEPS];
        COLUMN_FACTORS w_scales;
        FRAGMENT_LOOP for (uint s = 0; s < STEPS; ++s) {
          uint w_half = FRAGMENT_K == 32 ? 0 : pass + s;
          LOAD_INTEGERS_B(ws[s], W_TILE + line * LINE + w_half, LINE);
        }
        LOAD_COLUMN_FACTORS(w_scales, (pass == 0 ? W_SCALES : W_SECONDS) + line / 4);
        FRAGMENT_LOOP for (uint i = 0; i < parts_m; ++i) {
          INTEGER_SUM dots = ZERO_INTEGER_SUM;
          FRAGMENT_LOOP for (uint s = 0; s < STEPS; ++s) {
            MULTIPLY_ADD_INTEGERS(xs[i][s], ws[s], dots);
          }
          ADD_SCALED(sums[i][j], dots, x_scales[i], w_scales);
        }
      }
    }
    if (MINIMA) {
      FRAGMENT_FACTORS x_sums[parts_m];
      FRAGMENT_LOOP for (uint i = 0; i < parts_m; ++i) {
        LOAD_FACTORS(x_sums[i], X_SUMS + (block_row + i * FRAGMENT_M) / 4);
      }
      FRAGMENT_LOOP for (uint j = 0; j < parts_n; ++j) {
        COLUMN_FACTORS minima;
        LOAD_COLUMN_FACTORS(minima, W_SECONDS + (block_column + j * FRAGMENT_N) / 4);
        FRAGMENT_LOOP for (uint i = 0; i < parts_m; ++i) {
          ADD_OUTER_PRODUCT(sums[i][j], x_sums[i], minima);
        }
      }
    }
  }

  // Like in matmul_coopmat.comp: through shared memory, FRAGMENT_M rows of each block at a time.
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
