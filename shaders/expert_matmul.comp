// Products of tokens with the matrices of the experts that they were sent to. One invocation per
// element of the result, or for f16 results per two of a word; it walks over its rows of x and of
// the expert's matrix.
#version 450
#extension GL_GOOGLE_include_directive : require
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

PARAMS(ExpertParams)
BUFFER(2, readonly, control, uint)

#ifdef ACTIVATION_F16
BUFFER(0, readonly, x, uint)
float x_at(uint i) { return unpackHalf2x16(AT(x, i / 2))[i % 2]; }
#else
BUFFER(0, readonly, x, float)
float x_at(uint i) { return AT(x, i); }
#endif
#if defined(WEIGHT_BLOCKS)
#define BLOCKS_BUFFER 1
#define BLOCKS_COLUMNS params.depth
#include "blocks.glsl"
#elif defined(WEIGHT_HALF)
BUFFER(1, readonly, weight, uint)
float weight_at(uint i) { return unpack_weight2(AT(weight, i / 2))[i % 2]; }
#else
BUFFER(1, readonly, weight, float)
float weight_at(uint i) { return AT(weight, i); }
#endif

float row_product(uint x_row, uint weight_row) {
  uint x_first = x_row * params.depth, weight_first = weight_row * params.depth;
  float sum = 0.0;
#ifdef WEIGHT_BLOCKS
  for (uint k = 0; k < params.depth; k += 4) {
    vec4 factor = vec4(x_at(x_first + k), x_at(x_first + k + 1), x_at(x_first + k + 2),
                       x_at(x_first + k + 3));
    sum += dot(factor, block_quad(weight_row, k));
  }
#else
  for (uint k = 0; k < params.depth; ++k) sum += x_at(x_first + k) * weight_at(weight_first + k);
#endif
  if (BIAS == 1) sum += uintBitsToFloat(AT(control, params.bias_offset + weight_row));
  return sum;
}

float gated(float gate, float value) {
  if (LIMIT == 0.0) return activate(gate, FUNCTION) * value;
  return activate(min(gate, LIMIT), FUNCTION) * (clamp(value, -LIMIT, LIMIT) + 1.0);
}

float expert_value(uint x_row, uint route, uint column) {
  uint expert = min(AT(control, route * 2 + 1), params.experts - 1);
  if (GATED == 1) {
    uint gate_row = (expert * params.columns + column) * 2;
    return gated(row_product(x_row, gate_row), row_product(x_row, gate_row + 1));
  }
  return activate(row_product(x_row, expert * params.columns + column), FUNCTION);
}

float value_of(uint row, uint column) {
  if (COMBINE == 0) return expert_value(row / params.experts_per_token, row, column);
  float sum = 0.0, gates = 0.0;
  for (uint slot = 0; slot < params.experts_per_token; ++slot) {
    uint route = row * params.experts_per_token + slot;
    float gate = exp(uintBitsToFloat(AT(control, route * 2)));
    sum += gate * expert_value(route, route, column);
    gates += gate;
  }
  return NORMALIZE == 1 ? sum / gates : sum;
}

#ifdef ACTIVATION_F16
BUFFER(3, writeonly, y, uint)
const uint PER_INVOCATION = 2;
void store(uint i, uint row, uint column) {
  AT(y, i) = packHalf2x16(vec2(value_of(row, column), value_of(row, column + 1)));
}
#else
BUFFER(3, writeonly, y, float)
const uint PER_INVOCATION = 1;
void store(uint i, uint row, uint column) { AT(y, i) = value_of(row, column); }
#endif

void main() {
  uint row_units = params.columns / PER_INVOCATION, units = params.rows * row_units;
  uint stride = gl_NumWorkGroups.x * LOCAL_SIZE;
  for (uint i = gl_GlobalInvocationID.x; i < units; i += stride) {
    uint row = i / row_units;
    store(i, row, (i - row * row_units) * PER_INVOCATION);
  }
}
