// Common parts of products with the matrices of experts: constants, parameters, the experts of
// routes, the bound rows of the matrices, and the epilogue.
#ifndef MULCIBER_EXPERTS_GLSL
#define MULCIBER_EXPERTS_GLSL
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
layout(constant_id = EXPERT_PART) const uint PART = 0;

PARAMS(ExpertParams)
BUFFER(2, readonly, control, uint)
#ifdef WEIGHT_BLOCKS
#define BLOCKS_BUFFER 1
#define BLOCKS_COLUMNS params.depth
#include "blocks.glsl"
#endif

const uint PER_COLUMN = GATED == 1 ? 2 : 1;  // rows of a matrix for a column of the result

uint expert_of(uint route) { return min(AT(control, route * 2 + 1), params.experts - 1); }
float gate_of(uint route) { return exp(uintBitsToFloat(AT(control, route * 2))); }

// Rows are counted from the first row of the first expert. Whether any of rows [first, end) are
// bound, and the position of a row in the buffer; a row that is not bound maps to the last one.
bool any_bound(uint first, uint end) {
  return PART == 0 || (end > params.first_row && first < params.first_row + params.bound_rows);
}
uint bound_row(uint row) {
  return PART == 0 ? row : min(row - params.first_row, params.bound_rows - 1);
}

float with_bias(float sum, uint row) {
  if (BIAS == 1) sum += uintBitsToFloat(AT(control, params.bias_offset + row));
  return sum;
}

/// The result of a sum of products; where GATED the sum is a gate for the sum beside it.
float result_of(float sum, float beside) {
  if (GATED == 0) return activate(sum, FUNCTION);
  if (LIMIT == 0.0) return activate(sum, FUNCTION) * beside;
  return activate(min(sum, LIMIT), FUNCTION) * (clamp(beside, -LIMIT, LIMIT) + 1.0);
}

#endif
