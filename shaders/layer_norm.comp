// Layer norm, one workgroup per row. The mean is computed first, then squares of deviations, so
// that a large common offset costs no precision; for the same reason the mean is computed from
// differences to the row's first element. A row whose second type is q8_1 writes y in blocks.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "interface.h"
#include "norm.h"
#define BUFFER_COUNT 4
#include "buffers.glsl"

layout(constant_id = NORM_RESIDUAL) const uint RESIDUAL = 0;

PARAMS(LayerNormParams)

#include "rows.glsl"

BUFFER(0, readonly, x, STORED)
BUFFER(1, readonly, residual, STORED)
BUFFER(2, readonly, gain_bias, GAIN)
#ifdef WEIGHT_Q8_1
#define Q8_1_BUFFER 3
#include "store_q8_1.glsl"
#else
BUFFER(3, , y, STORED)
#endif

UNIT load(RowSpan span, uint i) {
  UNIT value = unpack(AT(x, span.first + i));
  if (RESIDUAL == 1) value += unpack(AT(residual, span.first + i));
  return value;
}

UNIT load_from(RowSpan span, uint i, float origin) {
  return KEEP_INSIDE(span, i, load(span, i) - origin);
}

float first_element(RowSpan span) {
  UNIT value = load(span, 0);
#ifdef UNIT_SHARED
  return value[span.lead];
#elif UNIT_WIDTH == 4
  return value.x;
#else
  return value;
#endif
}

void main() {
  uint row = gl_WorkGroupID.x;
  RowSpan span = span_of(row);
  float origin = first_element(span);
  UNIT sum = UNIT(0);
  FOR_EACH_UNIT(i, span.count, { sum += load_from(span, i, origin); })
  float mean = row_add(total(sum)) / float(params.columns);

  UNIT squares = UNIT(0);
  FOR_EACH_UNIT(i, span.count, {
    UNIT deviation = KEEP_INSIDE(span, i, load(span, i) - origin - mean);
    squares += deviation * deviation;
  })
  float variance = row_add(total(squares)) / float(params.columns);
  float inverse = 1.0 / sqrt(variance + params.epsilon);

#ifdef WEIGHT_Q8_1
  // Each block belongs to one invocation: its scale needs no other.
  for (uint block = LANE; block < params.columns / 32; block += LANES) {
    vec4 quads[8];
    [[unroll]] for (uint part = 0; part < 8; ++part) {
      uint i = block * 8 + part;
      quads[part] = (load(span, i) - origin - mean) * inverse * GAIN_OF(gain_bias, span, i, 0) +
                    GAIN_OF(gain_bias, span, i, 1);
    }
    store_q8_1(row, params.columns, block, quads);
  }
#else
  FOR_EACH_UNIT(i, span.count, {
    UNIT deviation = load(span, i) - origin - mean;
    STORE_UNIT(
        y, span, i,
        deviation * inverse * GAIN_OF(gain_bias, span, i, 0) + GAIN_OF(gain_bias, span, i, 1))
  })
#endif
}
