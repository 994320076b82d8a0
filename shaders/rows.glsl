// Rows of activations, read and written in the units that one invocation takes at a time:
//
//   VECTOR, f32   vec4
//   VECTOR, f16   four halves in two words
//   f16           a word of two halves; rows of odd length may share their first and last word
//                 with a neighbour, so that part of a unit is outside the row
//   f32           one float
//
// The kernel must declare params with rows and columns before. It needs no 16-bit feature of the
// device.
//
// LANES invocations share a row; this one has number LANE; row_add and row_max reduce over them.
// With ROW_PER_SUBGROUP every subgroup of the workgroup processes the same row (on the devices for
// which it is made there is only one), and the shader has no barrier: software drivers run shaders
// with barriers much slower. For the same reason main() has neither a loop over rows nor an early
// return: there is one workgroup per row.
#ifndef MULCIBER_ROWS_GLSL
#define MULCIBER_ROWS_GLSL

#ifdef ROW_PER_SUBGROUP
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#define LANE gl_SubgroupInvocationID
#define LANES gl_SubgroupSize
float row_add(float value) { return subgroupAdd(value); }
float row_max(float value) { return subgroupMax(value); }
#else
#include "reduce.glsl"
#define LANE gl_LocalInvocationIndex
#define LANES LOCAL_SIZE
float row_add(float value) { return workgroup_add(value); }
float row_max(float value) { return workgroup_max(value); }
#endif

#ifndef KEEPS_ROWS
// Units per invocation and loop iteration: on software drivers an iteration costs more than its
// work.
ROW_CONSTANT(UNROLL, 1);
#endif

#ifdef ACTIVATION_F16
uint pack_halves(vec2 value) {
#ifdef STORES_INFINITY
  // SwiftShader converts infinity to NaN, and changes the other half too.
  uint bits = packHalf2x16(mix(value, vec2(0), isinf(value)));
  if (isinf(value.x)) bits |= value.x < 0 ? 0xfc00u : 0x7c00u;
  if (isinf(value.y)) bits |= value.y < 0 ? 0xfc000000u : 0x7c000000u;
  return bits;
#else
  return packHalf2x16(value);
#endif
}
#endif

#ifdef VECTOR
#define UNIT vec4
#define UNIT_BOOL bvec4
#define UNIT_WIDTH 4
#ifdef ACTIVATION_F16
#define STORED uvec2
vec4 unpack(uvec2 word) { return vec4(unpackHalf2x16(word.x), unpackHalf2x16(word.y)); }
uvec2 pack(vec4 value) { return uvec2(pack_halves(value.xy), pack_halves(value.zw)); }
#else
#define STORED vec4
vec4 unpack(vec4 value) { return value; }
vec4 pack(vec4 value) { return value; }
#endif
float total(vec4 value) { return (value.x + value.y) + (value.z + value.w); }
float largest(vec4 value) { return max(max(value.x, value.y), max(value.z, value.w)); }
#elif defined(ACTIVATION_F16)
#define UNIT vec2
#define UNIT_BOOL bvec2
#define UNIT_WIDTH 2
#define UNIT_SHARED
#define STORED uint
vec2 unpack(uint word) { return unpackHalf2x16(word); }
uint pack(vec2 value) { return pack_halves(value); }
float total(vec2 value) { return value.x + value.y; }
float largest(vec2 value) { return max(value.x, value.y); }
#else
#define UNIT float
#define UNIT_BOOL bool
#define UNIT_WIDTH 1
#define STORED float
float unpack(float value) { return value; }
float pack(float value) { return value; }
float total(float value) { return value; }
float largest(float value) { return value; }
#endif

// The units [first, first + count) hold the columns of a row. The first element of unit i of the
// row is column i * UNIT_WIDTH - lead.
struct RowSpan {
  uint first;
  uint count;
  uint lead;
};

RowSpan span_of(uint row) {
#ifdef UNIT_SHARED
  uint begin = row * params.columns;
  return RowSpan(begin / 2, (begin % 2 + params.columns + 1) / 2, begin % 2);
#else
  uint count = params.columns / UNIT_WIDTH;
  return RowSpan(row * count, count, 0);
#endif
}

// The elements of unit i that are columns below `columns`.
UNIT_BOOL inside(RowSpan span, uint i, uint columns) {
  int column = int(i * UNIT_WIDTH) - int(span.lead);
#if UNIT_WIDTH == 4
  return lessThan(ivec4(column) + ivec4(0, 1, 2, 3), ivec4(columns));
#elif UNIT_WIDTH == 2
  return bvec2(column >= 0 && column < int(columns), column + 1 < int(columns));
#else
  return column < int(columns);
#endif
}

// Gains of columns: f32, in several parts, each as long as a row.
#ifdef VECTOR
#define GAIN vec4
#else
#define GAIN float
#endif
// The gains of unit I in a part. For columns outside the row they are arbitrary; before the row the
// index wraps around.
#ifdef UNIT_SHARED
#define GAIN_OF(NAME, SPAN, I, PART)                                                   \
  vec2(AT(NAME, (PART)*params.columns + min((I)*2 - (SPAN).lead, params.columns - 1)), \
       AT(NAME, (PART)*params.columns + min((I)*2 - (SPAN).lead + 1, params.columns - 1)))
#else
#define GAIN_OF(NAME, SPAN, I, PART) AT(NAME, (PART) * (SPAN).count + (I))
#endif

#ifdef UNIT_SHARED
#define KEEP_INSIDE(SPAN, I, VALUE) mix(UNIT(0), VALUE, inside(SPAN, I, params.columns))
#else
#define KEEP_INSIDE(SPAN, I, VALUE) (VALUE)
#endif

// Runs BODY for every unit I of COUNT that belongs to this invocation; neighbours take neighbouring
// units.
#define FOR_EACH_UNIT(I, COUNT, BODY)                                    \
  {                                                                      \
    uint base_ = 0;                                                      \
    for (; base_ + UNROLL * LANES <= (COUNT); base_ += UNROLL * LANES) { \
      [[unroll]] for (uint part_ = 0; part_ < UNROLL; ++part_) {         \
        uint I = base_ + part_ * LANES + LANE;                           \
        BODY                                                             \
      }                                                                  \
    }                                                                    \
    for (uint I = base_ + LANE; I < (COUNT); I += LANES) BODY            \
  }

// Stores elements of a unit. A word that neighbouring rows share is written by atomics.
#ifdef UNIT_SHARED
#define STORE_UNIT(NAME, SPAN, I, VALUE)                                    \
  {                                                                         \
    uint bits_ = pack(VALUE);                                               \
    bvec2 mine_ = inside(SPAN, I, params.columns);                          \
    if (all(mine_)) {                                                       \
      AT(NAME, (SPAN).first + (I)) = bits_;                                 \
    } else {                                                                \
      uint mask_ = (mine_.x ? 0xffffu : 0u) | (mine_.y ? 0xffff0000u : 0u); \
      atomicAnd(AT(NAME, (SPAN).first + (I)), ~mask_);                      \
      atomicOr(AT(NAME, (SPAN).first + (I)), bits_& mask_);                 \
    }                                                                       \
  }
#else
#define STORE_UNIT(NAME, SPAN, I, VALUE) AT(NAME, (SPAN).first + (I)) = pack(VALUE);
#endif

#endif
