// Multiplies each head's columns of x by the head's own matrix, on any device: an invocation
// computes four columns of a head of a row of y.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "head_matmul.glsl"

#ifdef ACTIVATION_F16
BUFFER(0, readonly, x, uint)
float x_at(uint i) { return unpackHalf2x16(AT(x, i / 2))[i % 2]; }
BUFFER(2, , y, uint)
/// Stores columns `at`, which is even, and `at` + 1.
void store_pair(uint at, vec2 value) {
  if (ADD == 1) value += unpackHalf2x16(AT(y, at / 2));
  AT(y, at / 2) = packHalf2x16(value);
}
#else
BUFFER(0, readonly, x, float)
float x_at(uint i) { return AT(x, i); }
BUFFER(2, , y, float)
#endif

void main() {
#ifdef WEIGHT_GRIDS
  fill_grid();
#endif
  const uint quads = (params.columns + 3) / 4;
  const uint head = gl_WorkGroupID.y;
  const uint units = params.rows * quads, stride = gl_NumWorkGroups.x * LOCAL_SIZE;
  for (uint unit = gl_GlobalInvocationID.x; unit < units; unit += stride) {
    const uint row = unit / quads, column = unit % quads * 4, last = params.columns - 1;
    const uint x_first = row * params.x_columns + params.x_first + head * params.x_step;
    const uint weight_row = params.weight_first + head * params.weight_step;
    vec4 sums = vec4(0);
    if (TRANSPOSED == 1) {
      for (uint k = 0; k < params.depth; ++k)
        sums += x_at(x_first + k) * weight_quad(weight_row + k, column);
    } else {
      for (uint k = 0; k < params.depth; k += 4) {
        vec4 factor;
        for (uint e = 0; e < 4; ++e)
          factor[e] = k + e < params.depth ? x_at(x_first + min(k + e, params.depth - 1)) : 0.0;
        for (uint j = 0; j < 4; ++j)
          sums[j] += dot(factor, weight_quad(weight_row + min(column + j, last), k));
      }
    }
    const uint at = row * params.y_columns + params.y_first + head * params.y_step + column;
#ifdef ACTIVATION_F16
    store_pair(at, sums.xy);
    if (column + 2 < params.columns) store_pair(at + 2, sums.zw);
#else
    for (uint j = 0; j < 4; ++j) {
      if (column + j >= params.columns) break;
      AT(y, at + j) = (ADD == 1 ? AT(y, at + j) : 0.0) + sums[j];
    }
#endif
  }
}
