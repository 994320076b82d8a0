// y = activation(a [+ b]), a given value, a scaled and capped or clipped, rows of a times their
// gates or scales, or interleaved gates of a times their values, four elements at a time. The row's
// first type is that of a and b, its second that of y.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "interface.h"
#include "elementwise.h"
#include "types.glsl"
#define BUFFER_COUNT 3
#include "buffers.glsl"
#include "activation.glsl"

PARAMS(ElementwiseParams)

layout(constant_id = ELEMENTWISE_OPERAND) const uint OPERAND = OPERAND_NONE;
layout(constant_id = ELEMENTWISE_ACTIVATION) const uint ACTIVATION_FUNCTION = 0;
layout(constant_id = ELEMENTWISE_FILL) const uint FILL = 0;
layout(constant_id = ELEMENTWISE_SCALE) const uint SCALE = SCALE_NOT;

#ifdef ACTIVATION_F16
#define INPUT(INDEX, NAME)                                             \
  BUFFER(INDEX, readonly, NAME, uvec2)                                 \
  BUFFER(INDEX, readonly, NAME##_words, uint)                          \
  vec4 NAME##_quad(uint quad) { return unpack_half4(AT(NAME, quad)); } \
  float NAME##_element(uint at) { return unpackHalf2x16(AT(NAME##_words, at / 2))[at % 2]; }
#else
#define INPUT(INDEX, NAME)                               \
  BUFFER(INDEX, readonly, NAME, vec4)                    \
  BUFFER(INDEX, readonly, NAME##_elements, float)        \
  vec4 NAME##_quad(uint quad) { return AT(NAME, quad); } \
  float NAME##_element(uint at) { return AT(NAME##_elements, at); }
#endif
INPUT(0, a)
INPUT(1, b)
BUFFER(1, readonly, b_numbers, float)  // 32 bits for any type of a

#ifdef WEIGHT_F16
BUFFER(2, , y, uvec2)
BUFFER(2, , y_words, uint)
void y_store_quad(uint quad, vec4 value) {
  AT(y, quad) = uvec2(packHalf2x16(value.xy), packHalf2x16(value.zw));
}
void y_store(uint at, float value) {
  // An invocation owns both halves of a word, except past the last element.
  uint old = AT(y_words, at / 2), bits = packHalf2x16(vec2(value, 0));
  AT(y_words, at / 2) = at % 2 == 0 ? (old & 0xffff0000u) | bits : (old & 0xffffu) | (bits << 16);
}
#else
BUFFER(2, , y, vec4)
BUFFER(2, , y_elements, float)
void y_store_quad(uint quad, vec4 value) { AT(y, quad) = value; }
void y_store(uint at, float value) { AT(y_elements, at) = value; }
#endif

float gate(uint at) {
  return 1.0 / (1.0 + exp(min(-b_element(at / params.columns), 80.0)));  // exp(80) is finite
}

// A scale of 0 gives 0 even for NaN.
float scaled_by_row(float value, uint at) {
  const uint row = at / params.columns / params.tokens;
  const float scale = AT(b_numbers, params.scales + row * params.scales_per_row +
                                        at % params.columns % params.scale_count);
  return scale == 0.0 ? 0.0 : value * scale;
}

float gated(float gate, float value) {
  if (SCALE == SCALE_CLIP) {  // see experts.glsl
    gate = min(gate, params.value);
    value = clamp(value, -params.value, params.value) + 1.0;
  }
  return activate(gate, ACTIVATION_FUNCTION) * value;
}

float scaled(float value) {
  if (SCALE == SCALE_CLIP) return clamp(value, -params.value, params.value);
  value *= params.value;
  return SCALE == SCALE_AND_CAP ? params.cap * safe_tanh(value / params.cap) : value;
}

void main() {
  uint quads = params.count / 4;
  for (uint quad = gl_GlobalInvocationID.x; quad < quads; quad += params.stride) {
    if (OPERAND == OPERAND_PAIRS) {
      const vec4 first = a_quad(quad * 2), second = a_quad(quad * 2 + 1);
      y_store_quad(quad, vec4(gated(first.x, first.y), gated(first.z, first.w),
                              gated(second.x, second.y), gated(second.z, second.w)));
      continue;
    }
    vec4 value = FILL != 0 ? vec4(params.value) : a_quad(quad);
    if (OPERAND == OPERAND_ADDED) value += b_quad(quad);
    if (OPERAND == OPERAND_GATES) {
      [[unroll]] for (uint i = 0; i < 4; ++i) value[i] *= gate(quad * 4 + i);
    }
    if (OPERAND == OPERAND_SCALES) {
      [[unroll]] for (uint i = 0; i < 4; ++i) value[i] = scaled_by_row(value[i], quad * 4 + i);
    }
    if (ACTIVATION_FUNCTION != ACTIVATION_NONE) {
      [[unroll]] for (uint i = 0; i < 4; ++i) value[i] = activate(value[i], ACTIVATION_FUNCTION);
    }
    if (SCALE != SCALE_NOT) {
      [[unroll]] for (uint i = 0; i < 4; ++i) value[i] = scaled(value[i]);
    }
    y_store_quad(quad, value);
  }
  if (gl_GlobalInvocationID.x == 0) {
    for (uint at = quads * 4; at < params.count; ++at) {
      if (OPERAND == OPERAND_PAIRS) {
        y_store(at, gated(a_element(at * 2), a_element(at * 2 + 1)));
        continue;
      }
      float value = FILL != 0 ? params.value : a_element(at);
      if (OPERAND == OPERAND_ADDED) value += b_element(at);
      if (OPERAND == OPERAND_GATES) value *= gate(at);
      if (OPERAND == OPERAND_SCALES) value = scaled_by_row(value, at);
      if (SCALE != SCALE_NOT) value = scaled(value);
      y_store(at, activate(value, ACTIVATION_FUNCTION));
    }
  }
}
