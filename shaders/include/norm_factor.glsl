// The root-mean-square norm of a product's only row of x, at the product's start: the factor of the
// row, and the gains. Every workgroup computes it, from a row that stays in the cache. The sum of
// squares is computed like in rms_norm.comp with NORM_LANES invocations, addition by addition, so
// that a product normalizes to the same bits as a separate dispatch.
#ifndef MULCIBER_NORM_FACTOR_GLSL
#define MULCIBER_NORM_FACTOR_GLSL

ROW_CONSTANT(NORM_LANES, 64);
layout(constant_id = MATMUL_EPSILON) const uint EPSILON = 0;

BUFFER(2, readonly, gains, float)
BUFFER(2, readonly, gain_quads, vec4)

float norm_factor;

float factor_of(float squares) {
  return 1.0 / sqrt(squares / float(params.depth) + uintBitsToFloat(EPSILON));
}

#ifdef SUBGROUP_ADD
BUFFER(0, readonly, quads_of_x, vec4)

// The sum of one of NORM_LANES lanes, over its quads of the row.
float lane_squares(uint lane) {
  precise vec4 squares = vec4(0);
  for (uint i = lane; i < params.depth / 4; i += NORM_LANES) {
    vec4 value = AT(quads_of_x, i);
    squares += value * value;
  }
  return (squares.x + squares.y) + (squares.z + squares.w);
}

#ifdef SUBGROUPS_ADD
shared float norm_sums[NORM_LANES / 4];  // sums of subgroups, which have at least 4 lanes

// The workgroup has more or fewer lanes than NORM_LANES, and sums in the order of rms_norm.comp.
void find_norm_factor() {
  const uint thread = gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID;
  for (uint first = thread; first < NORM_LANES; first += LOCAL_SIZE) {
    float sum = subgroupAdd(lane_squares(first));
    if (subgroupElect()) norm_sums[first / gl_SubgroupSize] = sum;
  }
  barrier();
  float sum = 0;
  for (uint part = 0; part < NORM_LANES / gl_SubgroupSize; ++part) sum += norm_sums[part];
  norm_factor = factor_of(sum);
}
#else
// The subgroup sums for all subgroups of such a workgroup, one after the other.
void find_norm_factor() {
  float sum = 0;
  [[unroll]] for (uint first = 0; first < NORM_LANES; first += SUBGROUP_SIZE) {
    sum += subgroupAdd(lane_squares(first + gl_LocalInvocationIndex));
  }
  norm_factor = factor_of(sum);
}
#endif
#else
#include "reduce.glsl"
BUFFER(0, readonly, elements_of_x, float)

void find_norm_factor() {
  precise float squares = 0;
  for (uint i = gl_LocalInvocationIndex; i < params.depth; i += NORM_LANES) {
    float value = AT(elements_of_x, i);
    squares += value * value;
  }
  norm_factor = factor_of(workgroup_add(squares));
}
#endif

#endif
