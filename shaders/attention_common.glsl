// What every attention kernel shares: buffers, sizes, masks. A kernel that reads vectors defines
// READ_VECTORS; it then asks for sizes, strides and offsets in fours.
#ifndef MULCIBER_ATTENTION_COMMON_GLSL
#define MULCIBER_ATTENTION_COMMON_GLSL

#define BUFFER_COUNT 4
#include "buffers.glsl"

PARAMS(AttentionParams)
BUFFER(3, readonly, control, uint)

layout(constant_id = CONSTANT_HEAD_SIZE) const uint HEAD_SIZE = 64;
layout(constant_id = CONSTANT_VALUE_SIZE) const uint VALUE_SIZE = 64;
layout(constant_id = CONSTANT_CAUSAL) const uint CAUSAL = 0;
layout(constant_id = CONSTANT_ANCESTRY) const uint ANCESTRY = 0;

// Storage f16 is read as 32-bit words, which needs no 16-bit feature of the device.
float half_of(uint word, uint index) {
  vec2 pair = unpackHalf2x16(word);
  return (index & 1u) == 0u ? pair.x : pair.y;
}

#ifdef READ_VECTORS

#ifdef ACTIVATION_F16
BUFFER(0, readonly, q, uvec2)
vec4 q_at(uint element) {
  uvec2 words = AT(q, element >> 2);
  return vec4(unpackHalf2x16(words.x), unpackHalf2x16(words.y));
}
#else
BUFFER(0, readonly, q, vec4)
vec4 q_at(uint element) { return AT(q, element >> 2); }
#endif

#ifdef WEIGHT_F16
BUFFER(1, readonly, kv, uvec2)
vec4 kv_at(uint element) {
  uvec2 words = AT(kv, element >> 2);
  return vec4(unpackHalf2x16(words.x), unpackHalf2x16(words.y));
}
#else
BUFFER(1, readonly, kv, vec4)
vec4 kv_at(uint element) { return AT(kv, element >> 2); }
#endif

#else

#ifdef ACTIVATION_F16
BUFFER(0, readonly, q, uint)
float q_at(uint element) { return half_of(AT(q, element >> 1), element); }
#else
BUFFER(0, readonly, q, float)
float q_at(uint element) { return AT(q, element); }
#endif

#ifdef WEIGHT_F16
BUFFER(1, readonly, kv, uint)
float kv_at(uint element) { return half_of(AT(kv, element >> 1), element); }
#else
BUFFER(1, readonly, kv, float)
float kv_at(uint element) { return AT(kv, element); }
#endif

#endif

#ifndef NO_RESULT
#ifdef READ_VECTORS
#ifdef ACTIVATION_F16
BUFFER(2, writeonly, result, uvec2)
void store_result(uint element, vec4 value) {
  AT(result, element >> 2) = uvec2(packHalf2x16(value.xy), packHalf2x16(value.zw));
}
#else
BUFFER(2, writeonly, result, vec4)
void store_result(uint element, vec4 value) { AT(result, element >> 2) = value; }
#endif
#else
#ifdef ACTIVATION_F16
BUFFER(2, restrict, result, uint)
// Two workgroups may own one word's halves when sizes are odd, so each half is put in by itself.
void store_result(uint element, float value) {
  uint shift = (element & 1u) * 16u;
  uint bits = packHalf2x16(vec2(value, 0)) & 0xffffu;
  atomicAnd(AT(result, element >> 1), ~(0xffffu << shift));
  atomicOr(AT(result, element >> 1), bits << shift);
}
#else
BUFFER(2, writeonly, result, float)
void store_result(uint element, float value) { AT(result, element) = value; }
#endif
#endif
#endif

// A score that loses against every real one; what it stands for is left out by its mask, not by its size.
const float kMasked = -1e30;

uint query_heads() { return gl_NumWorkGroups.y; }

/// Keys that the queries of a row of keys may see.
uint key_count(uint kv_row) {
  if (params.key_counts < 0) return params.kv_len;
  uint at = uint(params.key_counts) + (params.first_kv_row + kv_row) * params.key_count_stride;
  return min(AT(control, at) + params.key_count_extra, params.kv_len);
}

/// Keys that one query of the list may see: [0, result).
uint visible_keys(uint query, uint keys) {
  if (CAUSAL == 0u) return keys;
  int last = int(query % params.q_len) + int(keys) - int(params.q_len);
  return uint(clamp(last + 1, 0, int(keys)));
}

/// Element where key (or value) row `key` of a cache row begins, before the column.
uint key_base(uint kv_row, uint key) {
  uint row = kv_row;
  if (ANCESTRY != 0u) {
    uint at = uint(params.ancestry) + (params.first_kv_row + kv_row) * params.kv_len + key;
    row = AT(control, at);
  }
  return (row * params.kv_len + key) * params.kv_columns;
}

float head_factor(uint head) {
  return params.head_mask < 0 ? 1.0 : uintBitsToFloat(AT(control, uint(params.head_mask) + head));
}

#endif
