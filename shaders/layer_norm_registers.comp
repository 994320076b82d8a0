// Layer norm for devices whose lanes are SIMD lanes and where a load costs as much as many sums:
// one subgroup per TILE_ROWS rows, each read once and kept in registers; the rows share the loads
// of gain and bias. The arithmetic is that of layer_norm.comp. With READ_TEXELS all f32 inputs are
// read through texel buffers.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "interface.h"
#include "norm.h"
#define BUFFER_COUNT 4
#include "buffers.glsl"

layout(constant_id = NORM_RESIDUAL) const uint RESIDUAL = 0;
layout(constant_id = NORM_COLUMNS) const uint COLUMNS = 4;
ROW_CONSTANT(TILE_ROWS, 2);

PARAMS(LayerNormParams)

#define VECTOR
#define ROW_PER_SUBGROUP
#define KEEPS_ROWS  // in registers: no loops over a row
#include "rows.glsl"

#ifdef READ_TEXELS
TEXELS(0, x)
TEXELS(1, residual)
TEXELS(2, gain_bias)
#define READ(NAME, I) uintBitsToFloat(TEXEL(NAME, I))
#else
BUFFER(0, readonly, x, STORED)
BUFFER(1, readonly, residual, STORED)
BUFFER(2, readonly, gain_bias, vec4)
#define READ(NAME, I) AT(NAME, I)
#endif
BUFFER(3, writeonly, y, STORED)

const uint UNITS = COLUMNS / UNIT_WIDTH;
const uint PIECES = (UNITS + SUBGROUP_SIZE - 1) / SUBGROUP_SIZE;  // units per lane

// Steps of a butterfly over up to 128 lanes. The loop counts up: not all drivers unroll a loop that
// halves its counter.
const uint kMaxSteps = 7;

// subgroupAdd by shuffles, because some drivers loop over the lanes.
float lanes_add(float sum) {
  [[unroll]] for (uint step = 0; step < kMaxSteps; ++step) {
    if (1u << step < SUBGROUP_SIZE) sum += subgroupShuffleXor(sum, 1u << step);
  }
  return sum;
}

void main() {
  // Units past the end repeat the last one; they are not counted and not stored.
  uint unit[PIECES];
  bool inside[PIECES];
  [[unroll]] for (uint p = 0; p < PIECES; ++p) {
    uint next = p * SUBGROUP_SIZE + gl_SubgroupInvocationID;
    inside[p] = (p + 1) * SUBGROUP_SIZE <= UNITS || next < UNITS;
    unit[p] = inside[p] ? next : UNITS - 1;
  }

  vec4 deviation[TILE_ROWS * PIECES];
  uint first[TILE_ROWS];
  float inverse[TILE_ROWS];
  [[unroll]] for (uint r = 0; r < TILE_ROWS; ++r) {
    // The last tile repeats the last row, and writes it more than once.
    first[r] = min(gl_WorkGroupID.x * TILE_ROWS + r, params.rows - 1) * UNITS;
    const uint own = r * PIECES;
    [[unroll]] for (uint p = 0; p < PIECES; ++p) {
      deviation[own + p] = unpack(READ(x, first[r] + unit[p]));
      if (RESIDUAL == 1) deviation[own + p] += unpack(READ(residual, first[r] + unit[p]));
    }
    float origin = subgroupShuffle(deviation[own].x, 0);
    vec4 sum = vec4(0);
    [[unroll]] for (uint p = 0; p < PIECES; ++p) {
      deviation[own + p] -= origin;
      sum += inside[p] ? deviation[own + p] : vec4(0);
    }
    float mean = lanes_add(total(sum)) / float(COLUMNS);
    vec4 squares = vec4(0);
    [[unroll]] for (uint p = 0; p < PIECES; ++p) {
      deviation[own + p] -= mean;
      squares += inside[p] ? deviation[own + p] * deviation[own + p] : vec4(0);
    }
    inverse[r] = 1.0 / sqrt(lanes_add(total(squares)) / float(COLUMNS) + params.epsilon);
  }

  [[unroll]] for (uint p = 0; p < PIECES; ++p) {
    vec4 gain = READ(gain_bias, unit[p]);
    vec4 bias = READ(gain_bias, UNITS + unit[p]);
    [[unroll]] for (uint r = 0; r < TILE_ROWS; ++r) {
      vec4 value = deviation[r * PIECES + p] * inverse[r] * gain + bias;
      if (inside[p]) AT(y, first[r] + unit[p]) = pack(value);
    }
  }
}
