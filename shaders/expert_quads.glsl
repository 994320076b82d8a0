// Experts' matrices for subgroups whose lanes are along the depth and read four elements at a time;
// of weights in blocks a lane takes a word of four and the eight elements in it.
#ifndef MULCIBER_EXPERT_QUADS_GLSL
#define MULCIBER_EXPERT_QUADS_GLSL
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#include "experts.glsl"

ROW_CONSTANT(TILE_N, 4);

BUFFER(0, readonly, x, vec4)
BUFFER(3, writeonly, y, float)

const uint ROWS = PER_COLUMN * TILE_N;  // rows of a matrix for TILE_N columns of the result

/// The j-th of these rows; rows past the last column repeat the last.
uint matrix_row(uint expert, uint column, uint j) {
  const uint last = params.columns * PER_COLUMN - 1;
  return expert * (last + 1) + min(column * PER_COLUMN + j, last);
}

#if defined(WEIGHT_BLOCKS)
/// The eight elements in word s (0 to 3) of a group of 32: its quads s and s + 4.
void word_values(uint row, uint group, uint s, out vec4 first, out vec4 second) {
  const uint row_at = bound_row(row) * row_words(FORMAT);
  const GroupScales scales = group_scales(FORMAT, row_at, group);
  const QuadPair pair = quad_pair(FORMAT, row_at, group, s, group_high(FORMAT, row_at, group));
  first = quad_quants(FORMAT, pair.first) * quad_scale(scales.scale.x) + scales.minimum.x;
  second = quad_quants(FORMAT, pair.second) * quad_scale(scales.scale.y) + scales.minimum.y;
}
#else
#ifdef WEIGHT_HALF
BUFFER(1, readonly, weight, uvec2)
vec4 unpack(uvec2 words) { return unpack_weight4(words); }
#else
BUFFER(1, readonly, weight, vec4)
vec4 unpack(vec4 values) { return values; }
#endif
vec4 quad_values(uint row, uint quad) {
  return unpack(AT(weight, bound_row(row) * (params.depth / 4) + quad));
}
#endif

#endif
