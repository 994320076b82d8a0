// Sums and maxima over a workgroup, in a fixed order.
//
//   float workgroup_add(float value), float workgroup_max(float value)
//
// Every invocation of the workgroup must call them, and each gets the result. With SUBGROUP_ADD
// defined (the row then needs kSubgroupArithmetic) subgroups reduce by themselves, and at most 128
// of them combine in shared memory; without it the workgroup has at most 128 invocations, a power
// of two.
#ifndef MULCIBER_REDUCE_GLSL
#define MULCIBER_REDUCE_GLSL

#ifdef SUBGROUP_ADD
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#endif

shared float reduce_scratch[128];

#ifdef SUBGROUP_ADD

#define MULCIBER_REDUCTION(NAME, SUBGROUP_OPERATION, IDENTITY, COMBINE)    \
  float NAME(float value) {                                                \
    value = SUBGROUP_OPERATION(value);                                     \
    if (LOCAL_SIZE == SUBGROUP_SIZE && gl_NumSubgroups == 1) return value; \
    barrier();                                                             \
    if (subgroupElect()) reduce_scratch[gl_SubgroupID] = value;            \
    barrier();                                                             \
    float result = IDENTITY;                                               \
    for (uint i = 0; i < gl_NumSubgroups; ++i) {                           \
      float other = reduce_scratch[i];                                     \
      result = COMBINE;                                                    \
    }                                                                      \
    return result;                                                         \
  }

MULCIBER_REDUCTION(workgroup_add, subgroupAdd, 0.0, result + other)
MULCIBER_REDUCTION(workgroup_max, subgroupMax, uintBitsToFloat(0xff800000u), max(result, other))

#else

#define MULCIBER_REDUCTION(NAME, COMBINE)                                  \
  float NAME(float value) {                                                \
    uint lane = gl_LocalInvocationIndex;                                   \
    barrier();                                                             \
    reduce_scratch[lane] = value;                                          \
    barrier();                                                             \
    for (uint half_size = LOCAL_SIZE / 2; half_size > 0; half_size /= 2) { \
      if (lane < half_size) {                                              \
        float result = reduce_scratch[lane];                               \
        float other = reduce_scratch[lane + half_size];                    \
        reduce_scratch[lane] = COMBINE;                                    \
      }                                                                    \
      barrier();                                                           \
    }                                                                      \
    return reduce_scratch[0];                                              \
  }

MULCIBER_REDUCTION(workgroup_add, result + other)
MULCIBER_REDUCTION(workgroup_max, max(result, other))

#endif

#undef MULCIBER_REDUCTION
#endif
