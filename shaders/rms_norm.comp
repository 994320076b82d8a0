// Root-mean-square norm, one workgroup per row, after x was added to a residual stream, if there is
// one. The new value of the stream is computed again for each pass, not read back: y then does not
// depend on the rounding of the stream, and no invocation waits for another's writes. A row whose
// second type is q8_1 writes y in blocks. Sums of squares are precise, so that products that
// normalize x themselves (norm_factor.glsl) get the same bits.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "interface.h"
#include "norm.h"
#define BUFFER_COUNT 4
#include "buffers.glsl"

layout(constant_id = RMS_STREAM) const uint STREAM = RMS_PLAIN;

PARAMS(RmsNormParams)

#include "rows.glsl"

BUFFER(0, readonly, x, STORED)
BUFFER(1, , stream, STORED)
BUFFER(2, readonly, gains, GAIN)
#ifdef WEIGHT_Q8_1
#define Q8_1_BUFFER 3
#include "store_q8_1.glsl"
#else
BUFFER(3, , y, STORED)
#endif

float inverse_root(UNIT squares) {
  return 1.0 / sqrt(row_add(total(squares)) / float(params.columns) + params.epsilon);
}

// Unit i of the input of y's norm. x_scale: the row's factor in the first norm.
UNIT taken_up(RowSpan span, uint i, float x_scale) {
  UNIT value = unpack(AT(x, span.first + i));
  if (STREAM == RMS_ADD_NORM) value *= x_scale * GAIN_OF(gains, span, i, 0);
  if (STREAM != RMS_PLAIN) value += unpack(AT(stream, span.first + i));
  return value;
}

void main() {
  RowSpan span = span_of(gl_WorkGroupID.x);
  float x_scale = 1.0;
  if (STREAM == RMS_ADD_NORM) {
    precise UNIT squares = UNIT(0);
    FOR_EACH_UNIT(i, span.count, {
      UNIT value = KEEP_INSIDE(span, i, unpack(AT(x, span.first + i)));
      squares += value * value;
    })
    x_scale = inverse_root(squares);
  }

  precise UNIT squares = UNIT(0);
  FOR_EACH_UNIT(i, span.count, {
    UNIT value = KEEP_INSIDE(span, i, taken_up(span, i, x_scale));
    squares += value * value;
  })
  float scale = inverse_root(squares);

#ifdef WEIGHT_Q8_1
  // Each block belongs to one invocation: its scale needs no other.
  for (uint block = LANE; block < params.columns / 32; block += LANES) {
    vec4 quads[8];
    [[unroll]] for (uint part = 0; part < 8; ++part) {
      uint i = block * 8 + part;
      vec4 value = taken_up(span, i, x_scale);
      if (STREAM != RMS_PLAIN) AT(stream, span.first + i) = value;
      quads[part] = value * scale * GAIN_OF(gains, span, i, params.gain);
    }
    store_q8_1(gl_WorkGroupID.x, params.columns, block, quads);
  }
#else
  FOR_EACH_UNIT(i, span.count, {
    UNIT value = taken_up(span, i, x_scale);
    if (STREAM != RMS_PLAIN) STORE_UNIT(stream, span, i, value)
    STORE_UNIT(y, span, i, value * scale * GAIN_OF(gains, span, i, params.gain))
  })
#endif
}
