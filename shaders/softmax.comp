// Softmax and log-softmax over the columns that a row sees, one workgroup per row.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "interface.h"
#include "norm.h"
#define BUFFER_COUNT 3
#include "buffers.glsl"

layout(constant_id = SOFTMAX_LOGARITHM) const uint LOGARITHM = 0;
layout(constant_id = SOFTMAX_COUNTS) const uint COUNTS = 0;
layout(constant_id = SOFTMAX_CAUSAL) const uint CAUSAL_PERIOD = 0;

PARAMS(SoftmaxParams)

#define STORES_INFINITY
#include "rows.glsl"

BUFFER(0, readonly, x, STORED)
BUFFER(1, readonly, control, uint)
BUFFER(2, , y, STORED)

#define NEVER uintBitsToFloat(0xff800000u)

uint visible_columns(uint row) {
  uint visible = params.columns;
  uint number = params.first_row + row;
  if (COUNTS == 1) {
    visible = min(visible, AT(control, params.counts + number / params.rows_per_count));
  }
  if (CAUSAL_PERIOD > 0) visible = min(visible, number % max(CAUSAL_PERIOD, 1u) + 1);
  return visible;
}

// Scaled values, and -inf where the row does not see: hidden values, even NaN, have no effect.
UNIT load(RowSpan span, uint i, uint visible) {
  UNIT value = unpack(AT(x, span.first + i)) * params.scale;
#ifndef UNIT_SHARED
  if (COUNTS == 0 && CAUSAL_PERIOD == 0) return value;
#endif
  return mix(UNIT(NEVER), value, inside(span, i, visible));
}

void main() {
  uint row = gl_WorkGroupID.x;
  RowSpan span = span_of(row);
  uint visible = visible_columns(row);
  uint units = (span.lead + visible + UNIT_WIDTH - 1) / UNIT_WIDTH;

  UNIT highest = UNIT(NEVER);
  FOR_EACH_UNIT(i, units, { highest = max(highest, load(span, i, visible)); })
  float maximum = row_max(largest(highest));
  // Nothing is visible, or only -inf: every term is exp(-inf) and the sum 0.
  if (maximum == NEVER) maximum = 0;

  UNIT sum = UNIT(0);
  FOR_EACH_UNIT(i, units, { sum += exp(load(span, i, visible) - maximum); })
  float denominator = row_add(total(sum));

  if (LOGARITHM == 1) {
    // exp(0) and log(1) are not exact on every device, but one column must give 0.
    bool plain = denominator <= 1;
    float shift = maximum + (plain ? 0.0 : log(denominator));
    FOR_EACH_UNIT(i, span.count, {
      UNIT value = UNIT(NEVER);
      if (i < units) value = load(span, i, visible) - shift;
      STORE_UNIT(y, span, i, value)
    })
  } else {
    float inverse = denominator == 0 ? 0.0 : 1.0 / denominator;
    FOR_EACH_UNIT(i, span.count, {
      UNIT value = UNIT(0);
      if (i < units) value = exp(load(span, i, visible) - maximum) * inverse;
      STORE_UNIT(y, span, i, value)
    })
  }
}
