// Products of tokens with the matrices of their experts. One invocation per element of the result,
// or for f16 results per word of two; it loops over its rows of x and of the expert's matrix.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "experts.glsl"

#ifdef ACTIVATION_F16
BUFFER(0, readonly, x, uint)
float x_at(uint i) { return unpackHalf2x16(AT(x, i / 2))[i % 2]; }
#else
BUFFER(0, readonly, x, float)
float x_at(uint i) { return AT(x, i); }
#endif
#if defined(WEIGHT_HALF)
BUFFER(1, readonly, weight, uint)
float weight_at(uint i) { return unpack_weight2(AT(weight, i / 2))[i % 2]; }
#elif !defined(WEIGHT_BLOCKS)
BUFFER(1, readonly, weight, float)
float weight_at(uint i) { return AT(weight, i); }
#endif

float row_product(uint x_row, uint row) {
  const uint x_first = x_row * params.depth, weight_row = bound_row(row);
  float sum = 0.0;
#ifdef WEIGHT_BLOCKS
  for (uint k = 0; k < params.depth; k += 4) {
    vec4 factor = vec4(x_at(x_first + k), x_at(x_first + k + 1), x_at(x_first + k + 2),
                       x_at(x_first + k + 3));
    sum += dot(factor, block_quad(weight_row, k));
  }
#else
  const uint weight_first = weight_row * params.depth;
  for (uint k = 0; k < params.depth; ++k) sum += x_at(x_first + k) * weight_at(weight_first + k);
#endif
  return with_bias(sum, row);
}

float expert_value(uint x_row, uint route, uint column) {
  const uint row = (expert_of(route) * params.columns + column) * PER_COLUMN;
  const float sum = row_product(x_row, row);
  return result_of(sum, GATED == 1 ? row_product(x_row, row + 1) : 0.0);
}

float value_of(uint row, uint column) {
  if (COMBINE == 0) return expert_value(row / params.experts_per_token, row, column);
  float sum = 0.0, gates = 0.0;
  for (uint slot = 0; slot < params.experts_per_token; ++slot) {
    uint route = row * params.experts_per_token + slot;
    float gate = gate_of(route);
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
#ifdef WEIGHT_GRIDS
  fill_grid();
#endif
  uint row_units = params.columns / PER_INVOCATION, units = params.rows * row_units;
  uint stride = gl_NumWorkGroups.x * LOCAL_SIZE;
  for (uint i = gl_GlobalInvocationID.x; i < units; i += stride) {
    const uint row = i / row_units, column = (i - row * row_units) * PER_INVOCATION;
    if (PART == 1) {  // without combining, a row of the result is a route
      const uint first = (expert_of(row) * params.columns + column) * PER_COLUMN;
      if (!any_bound(first, first + 1)) continue;
    }
    store(i, row, column);
  }
}
