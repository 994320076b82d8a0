// Products of tokens with the matrices of the experts that they were sent to: a subgroup takes one
// row of x and TILE_N columns of the result. Its lanes stand along the depth, so that they read
// side by side, and are added up once. Of weights in blocks a lane takes a word of four and the
// eight elements that it holds.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#include "interface.h"
#include "experts.h"
#define BUFFER_COUNT 4
#include "buffers.glsl"
#include "types.glsl"
#include "activation.glsl"

layout(constant_id = EXPERT_COMBINE) const uint COMBINE = 0;
layout(constant_id = EXPERT_NORMALIZE) const uint NORMALIZE = 0;
layout(constant_id = EXPERT_GATED) const uint GATED = 0;
layout(constant_id = EXPERT_ACTIVATION) const uint FUNCTION = 0;
layout(constant_id = EXPERT_BIAS) const uint BIAS = 0;
layout(constant_id = EXPERT_LIMIT) const float LIMIT = 0.0;
ROW_CONSTANT(TILE_N, 4);

PARAMS(ExpertParams)
BUFFER(0, readonly, x, vec4)
BUFFER(2, readonly, control, uint)
BUFFER(3, writeonly, y, float)
#if defined(WEIGHT_BLOCKS)
#define BLOCKS_BUFFER 1
#define BLOCKS_COLUMNS params.depth
#include "blocks.glsl"
#elif defined(WEIGHT_HALF)
BUFFER(1, readonly, weight, uvec2)
vec4 weight_at(uint quad) { return unpack_weight4(AT(weight, quad)); }
#else
BUFFER(1, readonly, weight, vec4)
vec4 weight_at(uint quad) { return AT(weight, quad); }
#endif

const uint ROWS = GATED == 1 ? 2 * TILE_N : TILE_N;  // of a matrix, for TILE_N of the result

/// A sum of products as the result has it; GATED: the one beside it gates.
float value_of(float sum, float beside) {
  if (GATED == 0) return activate(sum, FUNCTION);
  if (LIMIT == 0.0) return activate(sum, FUNCTION) * beside;
  return activate(min(sum, LIMIT), FUNCTION) * (clamp(beside, -LIMIT, LIMIT) + 1.0);
}

void main() {
  const uint lane = gl_SubgroupInvocationID, quads = params.depth / 4;
  const uint blocks = (params.columns + TILE_N - 1) / TILE_N,
             slots = COMBINE == 1 ? params.experts_per_token : 1;
  for (uint unit = gl_WorkGroupID.x; unit < params.rows * blocks; unit += gl_NumWorkGroups.x) {
    const uint row = unit / blocks, column = unit % blocks * TILE_N;
    float results[TILE_N];
    [[unroll]] for (uint j = 0; j < TILE_N; ++j) results[j] = 0;
    float gates = 0;
    for (uint slot = 0; slot < slots; ++slot) {
      const uint route = COMBINE == 1 ? row * params.experts_per_token + slot : row;
      const uint x_first = (COMBINE == 1 ? route : row / params.experts_per_token) * quads;
      const uint expert = min(AT(control, route * 2 + 1), params.experts - 1);
      const uint per_column = ROWS / TILE_N, last = params.columns * per_column - 1;
      uint weight_row[ROWS];  // past the last column, the last again
      [[unroll]] for (uint j = 0; j < ROWS; ++j) {
        weight_row[j] = expert * (last + 1) + min(column * per_column + j, last);
      }
      float sums[ROWS];
      [[unroll]] for (uint j = 0; j < ROWS; ++j) sums[j] = 0;
#ifdef WEIGHT_BLOCKS
      for (uint word = lane; word < quads / 2; word += SUBGROUP_SIZE) {
        const uint group = word / 4, s = word % 4;
        const vec4 first = AT(x, x_first + group * 8 + s),
                   second = AT(x, x_first + group * 8 + 4 + s);
        [[unroll]] for (uint j = 0; j < ROWS; ++j) {
          const uint row_at = weight_row[j] * row_words(FORMAT);
          const GroupScales scales = group_scales(FORMAT, row_at, group);
          const QuadPair pair =
              quad_pair(FORMAT, row_at, group, s, group_high(FORMAT, row_at, group));
          sums[j] += dot(first, quad_quants(FORMAT, pair.first) * quad_scale(scales.scale.x) +
                                    scales.minimum.x);
          sums[j] += dot(second, quad_quants(FORMAT, pair.second) * quad_scale(scales.scale.y) +
                                     scales.minimum.y);
        }
      }
#else
      for (uint quad = lane; quad < quads; quad += SUBGROUP_SIZE) {
        const vec4 factor = AT(x, x_first + quad);
        [[unroll]] for (uint j = 0; j < ROWS; ++j) {
          sums[j] += dot(factor, weight_at(weight_row[j] * quads + quad));
        }
      }
#endif
      [[unroll]] for (uint j = 0; j < ROWS; ++j) {
        sums[j] = subgroupAdd(sums[j]);
        if (BIAS == 1) sums[j] += uintBitsToFloat(AT(control, params.bias_offset + weight_row[j]));
      }
      const float gate = COMBINE == 1 ? exp(uintBitsToFloat(AT(control, route * 2))) : 1.0;
      gates += gate;
      [[unroll]] for (uint j = 0; j < TILE_N; ++j) {
        results[j] += gate * value_of(sums[j * per_column], sums[j * per_column + GATED]);
      }
    }
    [[unroll]] for (uint j = 0; j < TILE_N; ++j) {
      if (lane == j % SUBGROUP_SIZE && column + j < params.columns) {
        AT(y, row * params.columns + column + j) = NORMALIZE == 1 ? results[j] / gates : results[j];
      }
    }
  }
}
