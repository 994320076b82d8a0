// Products unrolled by macros, without arrays or loops over the tile: for drivers that unroll
// nothing and keep every array in memory. A subgroup's lanes are along K and read neighbouring
// words; each lane sums its own part, and the subgroup sums the lanes at the end. The row of
// kernels.def defines ROWS_8, ROWS_4 or ROWS_1, the rows of y per subgroup. K is even.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#include "interface.h"
#include "matmul.h"
#include "types.glsl"
#include "matmul_operands.glsl"

#ifdef WEIGHT_HALF
BUFFER(0, readonly, x_pairs, vec2)
BUFFER(1, readonly, w_words, uint)
const uint STEP = 2;  // along K, per lane
#else
BUFFER(0, readonly, x_values, float)
BUFFER(1, readonly, w_values, float)
const uint STEP = 1;
#endif

#ifdef ROWS_8
#define ROWS(MACRO) MACRO(0) MACRO(1) MACRO(2) MACRO(3) MACRO(4) MACRO(5) MACRO(6) MACRO(7)
const uint TILE_M = 8;
#elif defined(ROWS_4)
#define ROWS(MACRO) MACRO(0) MACRO(1) MACRO(2) MACRO(3)
const uint TILE_M = 4;
#else
#define ROWS(MACRO) MACRO(0)
const uint TILE_M = 1;
#endif

void main() {
  uint lane = gl_LocalInvocationID.x;
  uint row0 = gl_WorkGroupID.y * TILE_M, column0 = gl_WorkGroupID.x * 4;
  uint last_column = params.columns - 1, last_row = params.rows - 1;
  uint w_at0 = min(column0, last_column) * params.depth / STEP + lane;
  uint w_at1 = min(column0 + 1, last_column) * params.depth / STEP + lane;
  uint w_at2 = min(column0 + 2, last_column) * params.depth / STEP + lane;
  uint w_at3 = min(column0 + 3, last_column) * params.depth / STEP + lane;
#define BEGIN(I)                                                       \
  uint x_at##I = min(row0 + I, last_row) * params.depth / STEP + lane; \
  vec4 sum##I = vec4(0);
  ROWS(BEGIN)

  uint ends = params.depth / STEP;
  for (uint k = lane; k < ends; k += LOCAL_SIZE) {
#ifdef WEIGHT_HALF
    vec2 pair0 = unpack_weight2(AT(w_words, w_at0)), pair1 = unpack_weight2(AT(w_words, w_at1));
    vec2 pair2 = unpack_weight2(AT(w_words, w_at2)), pair3 = unpack_weight2(AT(w_words, w_at3));
    vec4 w_even = vec4(pair0.x, pair1.x, pair2.x, pair3.x),
         w_odd = vec4(pair0.y, pair1.y, pair2.y, pair3.y);
#define MULTIPLY(I)                   \
  {                                   \
    vec2 pair = AT(x_pairs, x_at##I); \
    sum##I += pair.x * w_even;        \
    sum##I += pair.y * w_odd;         \
    x_at##I += LOCAL_SIZE;            \
  }
#else
    vec4 ws =
        vec4(AT(w_values, w_at0), AT(w_values, w_at1), AT(w_values, w_at2), AT(w_values, w_at3));
#define MULTIPLY(I)                     \
  sum##I += AT(x_values, x_at##I) * ws; \
  x_at##I += LOCAL_SIZE;
#endif
    ROWS(MULTIPLY)
    w_at0 += LOCAL_SIZE;
    w_at1 += LOCAL_SIZE;
    w_at2 += LOCAL_SIZE;
    w_at3 += LOCAL_SIZE;
  }

#define FINISH(I)                                                                                  \
  {                                                                                                \
    vec4 total = subgroupAdd(sum##I);                                                              \
    for (uint c = lane; c < 2; c += SUBGROUP_SIZE) {                                               \
      vec2 mine = c == 0 ? total.xy : total.zw;                                                    \
      if (column0 + 2 * c < params.columns) store_pair(row0 + I, column0 + 2 * c, mine.x, mine.y); \
    }                                                                                              \
  }
  ROWS(FINISH)
}
