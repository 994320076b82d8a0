// Few rows of x: lanes along K; each workgroup takes TILE_N rows of W, read once for all ROWS rows
// of x. With SUBGROUP_ADD a workgroup is one subgroup, whose lanes are summed without shared
// memory; with SUBGROUPS_ADD it is several subgroups that share the depth, so that a device of many
// units has enough loads in flight. Weights in blocks are taken WORDS words of a group at a time,
// by one lane; a single row of x multiplies the quantized integers and scales the sum. With x in
// blocks (q8_1) a lane takes whole groups, and the products are of integers. With NORMALIZED the
// row of x is normalized first. With HALF_SUMS eight products are summed in f16, in pairs, before
// they are added to a sum in f32.
#version 450
#extension GL_GOOGLE_include_directive : require
#ifdef SUBGROUPS_ADD
#define SUBGROUP_ADD
#extension GL_KHR_shader_subgroup_basic : require
#endif
#ifdef SUBGROUP_ADD
#extension GL_KHR_shader_subgroup_arithmetic : require
#endif
#ifdef HALF_SUMS
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#endif
#include "interface.h"
#include "matmul.h"
#include "types.glsl"
#include "matmul_operands.glsl"
#include "matmul_segments.glsl"

ROW_CONSTANT(TILE_N, 4);  // even
#if defined(WEIGHT_BLOCKS) && !defined(ACTIVATION_Q8_1)
ROW_CONSTANT(WORDS, 1);  // words of the four in a group of 32 elements
#endif
layout(constant_id = MATMUL_ROWS) const uint ROWS = 1;

// Number of sums that are added up in shared memory, and of the parts of each.
#ifdef SUBGROUPS_ADD
const uint kMostSubgroups = 32;
shared float partial[32 * kMostSubgroups];
#define PARTS gl_NumSubgroups
#define PART_AT(SUM, PART) ((SUM)*kMostSubgroups + (PART))
#elif !defined(SUBGROUP_ADD)
shared float partial[2080];      // at most 32 sums of 64 lanes, and a word of padding for each
#define PARTS LOCAL_SIZE
#define PART_AT(SUM, PART) ((SUM) * (LOCAL_SIZE + 1) + (PART))
#endif

#ifndef WEIGHT_BLOCKS
// Neighbours along K that a lane loads at once: 16 bytes of f16 where K is a multiple of 8.
#ifdef DEPTH_BY_8
const uint QUADS = 2;
#else
const uint QUADS = 1;
#endif

#ifdef HALF_SUMS
BUFFER(0, readonly, x_halves, f16vec4)
BUFFER(1, readonly, w_halves, f16vec4)
#elif defined(DEPTH_BY_8) && defined(WEIGHT_HALF)
BUFFER(1, readonly, w_wide, uvec4)
#endif

#ifndef HALF_SUMS
void load_w(uint row, uint k, out vec4 quads[QUADS]) {
#if defined(DEPTH_BY_8) && defined(WEIGHT_HALF)
  uvec4 wide = AT(w_wide, (row * params.depth + k) / 8);
  quads[0] = unpack_weight4(wide.xy);
  quads[1] = unpack_weight4(wide.zw);
#else
  [[unroll]] for (uint q = 0; q < QUADS; ++q) quads[q] = w_quad(row, k + 4 * q);
#endif
}
#endif
#endif

void multiply(uint format, uint first_column, uint end, uint at, uint group_of_columns) {
  uint lane = gl_LocalInvocationID.x;
  uint row0 = gl_WorkGroupID.y * ROWS, column0 = first_column + group_of_columns * TILE_N;

  // Beyond the edges the last row and column are computed again, and not stored.
  float sums[ROWS][TILE_N];
  [[unroll]] for (uint i = 0; i < ROWS; ++i) {
    [[unroll]] for (uint j = 0; j < TILE_N; ++j) sums[i][j] = 0;
  }
#ifdef ACTIVATION_Q8_1
  for (uint group = lane; group < params.depth / 32; group += LOCAL_SIZE) {
    GroupScales scales[TILE_N];
    QuadPair pairs[TILE_N][4];
    [[unroll]] for (uint j = 0; j < TILE_N; ++j) {
      uint row_at = at + (min(column0 + j, end - 1) - first_column) * row_words(format);
      scales[j] = group_scales(format, row_at, group);
      quad_pairs(format, row_at, group, group_high(format, row_at, group), pairs[j]);
    }
    [[unroll]] for (uint i = 0; i < ROWS; ++i) {
      uint row = min(row0 + i, params.rows - 1);
      uvec4 first = x_integers(row, group, 0), second = x_integers(row, group, 1);
      uvec2 scale_and_sums = x_scale(row, group);
      float scale = uintBitsToFloat(scale_and_sums.x);
      ivec2 x_sums = half_sums(scale_and_sums.y);
      [[unroll]] for (uint j = 0; j < TILE_N; ++j) {
        ivec2 dots = ivec2(0);
        [[unroll]] for (uint s = 0; s < 4; ++s) {
          dots.x = dot4(factors(format, pairs[j][s].first), first[s], dots.x);
          dots.y = dot4(factors(format, pairs[j][s].second), second[s], dots.y);
        }
        sums[i][j] += scale * scaled_dots(format, scales[j], dots, x_sums);
      }
    }
  }
#elif defined(WEIGHT_BLOCKS)
  const uint parts = 4 / WORDS;  // parts of a group
  for (uint part = lane; part < params.depth / 32 * parts; part += LOCAL_SIZE) {
    uint group = part / parts, first = part % parts * WORDS;
    // All columns are loaded before the first product: of the rows of x only one word's worth is
    // live at a time. In the other order compilers keep them all, 32 registers per row, and spill.
    GroupScales scales[TILE_N];
    QuadPair pairs[TILE_N][4];
    [[unroll]] for (uint j = 0; j < TILE_N; ++j) {
      uint row_at = at + (min(column0 + j, end - 1) - first_column) * row_words(format);
      scales[j] = group_scales(format, row_at, group);
      uvec2 high = group_high(format, row_at, group);
      if (WORDS == 4) {
        quad_pairs(format, row_at, group, high, pairs[j]);
      } else {
        [[unroll]] for (uint s = 0; s < WORDS; ++s) {
          pairs[j][s] = quad_pair(format, row_at, group, first + s, high);
        }
      }
    }
    [[unroll]] for (uint h = 0; h < 2; ++h) {
      vec4 products[TILE_N];
      float x_sum = 0;
      if (ROWS == 1) {
        [[unroll]] for (uint j = 0; j < TILE_N; ++j) products[j] = vec4(0);
      }
      [[unroll]] for (uint s = 0; s < WORDS; ++s) {
        vec4 xs[ROWS];
        [[unroll]] for (uint i = 0; i < ROWS; ++i) {
          xs[i] = x_quad(min(row0 + i, params.rows - 1), group * 32 + h * 16 + (first + s) * 4);
        }
        if (ROWS == 1) x_sum += dot(xs[0], vec4(1));
        [[unroll]] for (uint j = 0; j < TILE_N; ++j) {
          vec4 ws = quad_quants(format, h == 0 ? pairs[j][s].first : pairs[j][s].second);
          if (ROWS == 1) {
            products[j] += xs[0] * ws;
          } else {
            ws = ws * quad_scale(scales[j].scale[h]) + scales[j].minimum[h];
            [[unroll]] for (uint i = 0; i < ROWS; ++i) sums[i][j] += dot(xs[i], ws);
          }
        }
      }
      if (ROWS == 1) {
        [[unroll]] for (uint j = 0; j < TILE_N; ++j) {
          sums[0][j] +=
              dot(products[j], quad_scale(scales[j].scale[h])) + x_sum * scales[j].minimum[h];
        }
      }
    }
  }
#elif defined(HALF_SUMS)
  for (uint k = lane * 8; k < params.depth; k += LOCAL_SIZE * 8) {
    f16vec4 xs[ROWS][2];
    [[unroll]] for (uint i = 0; i < ROWS; ++i) {
      uint x_at = (min(row0 + i, params.rows - 1) * params.depth + k) / 4;
      xs[i][0] = AT(x_halves, x_at);
      xs[i][1] = AT(x_halves, x_at + 1);
    }
    [[unroll]] for (uint j = 0; j < TILE_N; ++j) {
      uint w_at = (min(column0 + j, params.columns - 1) * params.depth + k) / 4;
      f16vec4 low = AT(w_halves, w_at), high = AT(w_halves, w_at + 1);
      [[unroll]] for (uint i = 0; i < ROWS; ++i) {
        f16vec4 part = fma(xs[i][1], high, xs[i][0] * low);
        vec2 two = vec2(part.xy + part.zw);
        sums[i][j] += two.x + two.y;
      }
    }
  }
#else
  for (uint k = lane * QUADS * 4; k < params.depth; k += LOCAL_SIZE * QUADS * 4) {
    vec4 xs[ROWS][QUADS];
    [[unroll]] for (uint i = 0; i < ROWS; ++i) {
      uint row = min(row0 + i, params.rows - 1);
      [[unroll]] for (uint q = 0; q < QUADS; ++q) xs[i][q] = x_quad(row, k + 4 * q);
    }
    [[unroll]] for (uint j = 0; j < TILE_N; ++j) {
      vec4 ws[QUADS];
      load_w(min(column0 + j, params.columns - 1), k, ws);
      [[unroll]] for (uint i = 0; i < ROWS; ++i) {
        [[unroll]] for (uint q = 0; q < QUADS; ++q) sums[i][j] += dot(xs[i][q], ws[q]);
      }
    }
  }
#endif

  // The lane with half of the even number i * TILE_N + j, modulo the number of lanes, finishes that
  // sum and the next.
#if defined(SUBGROUP_ADD) && !defined(SUBGROUPS_ADD)
  const uint turns = (ROWS * TILE_N / 2 + LOCAL_SIZE - 1) / LOCAL_SIZE;
  vec2 results[turns];
  [[unroll]] for (uint i = 0; i < ROWS; ++i) {
    [[unroll]] for (uint j = 0; j < TILE_N; j += 2) {
      vec2 sum = vec2(subgroupAdd(sums[i][j]), subgroupAdd(sums[i][j + 1]));
      uint index = (i * TILE_N + j) / 2;
      if (lane == index % LOCAL_SIZE) results[index / LOCAL_SIZE] = sum;
    }
  }
  [[unroll]] for (uint turn = 0; turn < turns; ++turn) {
    uint index = (turn * LOCAL_SIZE + lane) * 2;
    if (index < ROWS * TILE_N && column0 + index % TILE_N < end) {
      store_pair(row0 + index / TILE_N, column0 + index % TILE_N, results[turn].x, results[turn].y);
    }
  }
#else
  [[unroll]] for (uint i = 0; i < ROWS; ++i) {
    [[unroll]] for (uint j = 0; j < TILE_N; ++j) {
#ifdef SUBGROUPS_ADD
      float sum = subgroupAdd(sums[i][j]);
      if (subgroupElect()) partial[PART_AT(i * TILE_N + j, gl_SubgroupID)] = sum;
#else
      partial[PART_AT(i * TILE_N + j, lane)] = sums[i][j];
#endif
    }
  }
  barrier();
  for (uint index = lane * 2; index < ROWS * TILE_N; index += LOCAL_SIZE * 2) {
    float first = 0, second = 0;
    for (uint part = 0; part < PARTS; ++part) {
      first += partial[PART_AT(index, part)];
      second += partial[PART_AT(index + 1, part)];
    }
    if (column0 + index % TILE_N < end)
      store_pair(row0 + index / TILE_N, column0 + index % TILE_N, first, second);
  }
#endif
}

void main() {
#ifdef WEIGHT_GRIDS
  fill_grid();
#endif
#ifdef NORMALIZED
  find_norm_factor();
#endif
  multiply_segment(TILE_N);
}
