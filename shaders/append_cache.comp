// Writes keys and values of a step into the cache: one 32-bit word of the cache per invocation, or
// four columns with READ_VECTORS, which needs widths and offsets in fours, or a block of 32 columns
// of q8_0.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "interface.h"
#include "attention.h"
#define BUFFER_COUNT 3
#include "buffers.glsl"
#include "cache_pages.h"

PARAMS(AppendCacheParams)
BUFFER(2, readonly, control, uint)
#ifdef READ_VECTORS
#ifdef ACTIVATION_F16
BUFFER(0, readonly, x, uvec2)
#else
BUFFER(0, readonly, x, vec4)
#endif
#ifdef WEIGHT_F16
BUFFER(1, writeonly, cache, uvec2)
#else
BUFFER(1, writeonly, cache, vec4)
#endif
#else
#ifdef ACTIVATION_F16
BUFFER(0, readonly, x, uint)
float x_at(uint element) {
  vec2 pair = unpackHalf2x16(AT(x, element >> 1));
  return (element & 1u) == 0u ? pair.x : pair.y;
}
#else
BUFFER(0, readonly, x, float)
float x_at(uint element) { return AT(x, element); }
#endif
#if defined(WEIGHT_Q8_0)
#define CACHE_BUFFER 1
#include "store_blocks.glsl"
#elif defined(WEIGHT_F16)
BUFFER(1, restrict, cache, uint)
#else
BUFFER(1, writeonly, cache, float)
#endif
#endif

void main() {
  const uint row = gl_WorkGroupID.z;
  const uint query = gl_WorkGroupID.y;
  const uint position = AT(control, params.positions + row * params.position_stride) + query;
  // The first comparison also catches a sum that wrapped around.
  if (position < query || position >= params.context) return;
  const uint from = (row * params.q_len + query) * params.x_columns + params.x_first;
  uint place = row * params.context + position;
  if (CACHE_PAGE != 0u) {
    uint at = PAGE_WORD(params.pages, row, params.context, position);
    place = PLACE_IN_PAGE(AT(control, at), position);
  }
  const uint to = place * params.columns;
  const uint index = gl_GlobalInvocationID.x;

#if defined(WEIGHT_Q8_0)
  if (index >= params.columns / 32u) return;
  vec4 quads[8];
  [[unroll]] for (uint i = 0; i < 8; ++i) {
    uint x = from + index * 32u + i * 4u;
    quads[i] = vec4(x_at(x), x_at(x + 1u), x_at(x + 2u), x_at(x + 3u));
  }
  store_block(position_words(place, params.columns), params.columns, index, quads);
#elif defined(READ_VECTORS)
  if (index >= params.columns >> 2) return;
#if defined(WEIGHT_F16) && !defined(ACTIVATION_F16)
  const vec4 value = AT(x, (from >> 2) + index);
  AT(cache, (to >> 2) + index) = uvec2(packHalf2x16(value.xy), packHalf2x16(value.zw));
#else
  AT(cache, (to >> 2) + index) = AT(x, (from >> 2) + index);
#endif
#elif defined(WEIGHT_F16)
  // The words of the cache that hold columns of this position. With an odd width the first and last
  // word may be shared with a neighbour, whose half must not change.
  const uint word = (to >> 1) + index;
  if (word > (to + params.columns - 1u) >> 1) return;
  const uint low = word * 2u;
  const bool has_low = low >= to;
  const bool has_high = low + 1u < to + params.columns;
  const float low_value = has_low ? x_at(from + low - to) : 0.0;
  const float high_value = has_high ? x_at(from + low + 1u - to) : 0.0;
  const uint bits = packHalf2x16(vec2(low_value, high_value));
  if (has_low && has_high) {
    AT(cache, word) = bits;
  } else {
    atomicAnd(AT(cache, word), has_low ? 0xffff0000u : 0x0000ffffu);
    atomicOr(AT(cache, word), bits);
  }
#else
  if (index < params.columns) AT(cache, to + index) = x_at(from + index);
#endif
}
