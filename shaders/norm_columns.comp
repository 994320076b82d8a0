// Normalizes groups of columns of each row in place, each group by itself and with gains of its
// own: heads of queries and keys, or all of them together. One workgroup per row and group. An
// invocation reads only what it writes itself.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "interface.h"
#include "norm.h"
#define BUFFER_COUNT 2
#include "buffers.glsl"

layout(constant_id = COLUMNS_CENTERED) const uint CENTERED = 0;

PARAMS(NormColumnsParams)

#include "rows.glsl"

BUFFER(0, , x, STORED)
BUFFER(1, readonly, gains, GAIN)

void main() {
  uint group = gl_WorkGroupID.y;
  RowSpan span = span_of(0);
  // Rows and groups begin with whole units.
  span.first = (gl_WorkGroupID.x * params.row_stride + params.first_column) / UNIT_WIDTH +
               group * span.count;
  float mean = 0.0;
  if (CENTERED == 1) {
    UNIT sum = UNIT(0);
    FOR_EACH_UNIT(i, span.count, { sum += unpack(AT(x, span.first + i)); })
    mean = row_add(total(sum)) / float(params.columns);
  }
  UNIT squares = UNIT(0);
  FOR_EACH_UNIT(i, span.count, {
    UNIT deviation = unpack(AT(x, span.first + i)) - mean;
    squares += deviation * deviation;
  })
  float scale = 1.0 / sqrt(row_add(total(squares)) / float(params.columns) + params.epsilon);
  FOR_EACH_UNIT(i, span.count, {
    UNIT value = (unpack(AT(x, span.first + i)) - mean) * scale * GAIN_OF(gains, span, i, group);
    AT(x, span.first + i) = pack(value);
  })
}
