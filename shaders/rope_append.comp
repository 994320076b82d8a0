// Heads of a step: normalizes and rotates queries and keys; queries stay in place, keys and values
// go into the cache. One workgroup per head and position, or as many as the device allows. With
// KEYS_IN_PLACE no cache is bound, keys are rotated in place, and an append follows: for devices
// that bind only four buffers.
//
// Elements are processed in words of two neighbours. A rotation takes two words and two angles,
// whatever the pairing. With an odd number of pairs (ROPE_ODD_PAIRS) a word may hold elements of
// two pairs: rotated elements are staged in shared memory, and each word takes what it needs from
// there. Blocks of q8_0 need all elements that share a scale: a key's or value's words are staged
// in shared memory first.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "interface.h"
#include "rope.h"
#ifdef KEYS_IN_PLACE
#define BUFFER_COUNT 4
#else
#define BUFFER_COUNT 5
#endif
#include "buffers.glsl"
#include "cache_pages.h"

layout(constant_id = ROPE_INTERLEAVED) const uint INTERLEAVED = 0;
layout(constant_id = ROPE_GAINS) const uint GAINS = 0;
layout(constant_id = ROPE_ODD_PAIRS) const uint ODD_PAIRS = 0;

PARAMS(RopeAppendParams)

#ifdef ROW_PER_SUBGROUP
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#define LANE gl_SubgroupInvocationID
#define LANES gl_SubgroupSize
float head_add(float value) { return subgroupAdd(value); }
void wait_for_staged() {
  subgroupMemoryBarrierShared();
  subgroupBarrier();
}
#else
#include "reduce.glsl"
#define LANE gl_LocalInvocationIndex
#define LANES LOCAL_SIZE
float head_add(float value) { return workgroup_add(value); }
void wait_for_staged() { barrier(); }
#endif

BUFFER(1, readonly, control, uint)
BUFFER(2, readonly, angles, vec2)
BUFFER(3, readonly, gains, vec2)
#ifdef ACTIVATION_F16
BUFFER(0, , qkv, uint)
vec2 load(uint word) { return unpackHalf2x16(AT(qkv, word)); }
void store(uint word, vec2 value) { AT(qkv, word) = packHalf2x16(value); }
#else
BUFFER(0, , qkv, vec2)
vec2 load(uint word) { return AT(qkv, word); }
void store(uint word, vec2 value) { AT(qkv, word) = value; }
#endif
#ifdef KEYS_IN_PLACE
#define APPEND(WORD, VALUE)
#elif defined(WEIGHT_Q8_0)
#define CACHE_BUFFER 4
#include "store_blocks.glsl"
shared vec2 staged[ROPE_MOST_STAGED / 2];
#define APPEND(WORD, VALUE) staged[WORD] = VALUE;
#elif defined(WEIGHT_F16)
BUFFER(4, writeonly, cache, uint)
#define APPEND(WORD, VALUE) AT(cache, to + WORD) = packHalf2x16(VALUE);
#else
BUFFER(4, writeonly, cache, vec2)
#define APPEND(WORD, VALUE) AT(cache, to + WORD) = VALUE;
#endif
#include "rotation.glsl"

shared vec2 turning[ROPE_MOST_ODD / 2];  // pairs of one head, normalized

float turning_at(uint element) {
  vec2 word = turning[element / 2];
  return (element & 1u) == 0u ? word.x : word.y;
}

float angle_at(uint element) {
  vec2 word = AT(angles, element / 2);
  return (element & 1u) == 0u ? word.x : word.y;
}

/// An element of the staged head after rotation. cosines: the position's first element in the table
/// of angles; pairs: number of rotated pairs.
float turned_element(uint element, uint cosines, uint pairs) {
  bool second = INTERLEAVED != 0 ? (element & 1u) != 0u : element >= pairs;
  uint pair = INTERLEAVED != 0 ? element / 2 : second ? element - pairs : element;
  uint partner = INTERLEAVED != 0 ? element ^ 1u : second ? pair : pair + pairs;
  return rotated(turning_at(element), turning_at(partner), angle_at(cosines + pair),
                 angle_at(cosines + pairs + pair), second);
}

#if defined(WEIGHT_Q8_0) && !defined(KEYS_IN_PLACE)
/// place: a position's index among all rows'; head: index among keys and values.
void store_staged(uint place, uint head, bool room) {
  wait_for_staged();
  uint columns = params.kv_heads * (params.head_size + params.value_size),
       blocks = params.head_size / 32;
  for (uint block = LANE; block < blocks && room; block += LANES) {
    vec4 quads[8];
    [[unroll]] for (uint i = 0; i < 8; ++i) {
      quads[i] = vec4(staged[block * 16 + 2 * i], staged[block * 16 + 2 * i + 1]);
    }
    store_block(position_words(place, columns), columns, head * blocks + block, quads);
  }
  wait_for_staged();  // before the next head comes
}
#endif

void serve(uint head, uint query, uint row) {
  uint position = AT(control, params.positions + row * params.position_stride) + query;
  if (position < query) position = 0xffffffffu;  // the sum wrapped around
  bool room = position < params.context;
  uint words = params.head_size / 2;
  // Heads of values may have another size than the heads before them.
  uint values = params.heads + params.kv_heads, value_words = params.value_size / 2;
  uint in_row = min(head, values) * words + (max(head, values) - values) * value_words;
  uint from =
      (row * params.tokens + query) * (values * words + params.kv_heads * value_words) + in_row;
  uint place = row * params.context + position;
#ifndef KEYS_IN_PLACE
  if (CACHE_PAGE != 0u && room) {
    uint at = PAGE_WORD(params.pages, row, params.context, position);
    place = PLACE_IN_PAGE(AT(control, at), position);
  }
#endif
  uint to = place * params.kv_heads * (words + value_words) + in_row - params.heads * words;

  if (head >= values) {
#ifndef KEYS_IN_PLACE
    for (uint w = LANE; w < value_words && room; w += LANES) APPEND(w, load(from + w))
#endif
  } else {
    bool is_key = head >= params.heads;
    float scale = 1.0;
    uint gain = is_key ? words : 0;
    if (GAINS != 0) {
      scale = head_scale(head_add(squares_of(from, words, LANE, LANES)), params.head_size,
                         params.epsilon);
    }
#ifdef KEYS_IN_PLACE
    bool in_place = true;
#else
    bool in_place = !is_key;
#endif

    uint angle_row = min(position, params.angle_rows - 1);
    if (ODD_PAIRS != 0) {
      uint turning_words = params.rotary_size / 2, cosines = angle_row * params.rotary_size;
      for (uint w = LANE; w < turning_words; w += LANES) {
        vec2 value = load(from + w);
        if (GAINS != 0) value *= scale * AT(gains, gain + w);
        turning[w] = value;
      }
      wait_for_staged();
      for (uint w = LANE; w < turning_words; w += LANES) {
        vec2 value = vec2(turned_element(2 * w, cosines, turning_words),
                          turned_element(2 * w + 1, cosines, turning_words));
        if (in_place) {
          store(from + w, value);
        } else if (room) {
          APPEND(w, value)
        }
      }
      wait_for_staged();  // before the next head comes
    }
    uint quarter = params.rotary_size / 4, cosines = angle_row * 2 * quarter;
    for (uint turn = LANE; turn < quarter && ODD_PAIRS == 0; turn += LANES) {
      uvec2 at = words_of_turn(turn, quarter);
      uint first = at.x, second = at.y;
      vec2 a = load(from + first), b = load(from + second);
      if (GAINS != 0) {
        a *= scale * AT(gains, gain + first);
        b *= scale * AT(gains, gain + second);
      }
      rotate(a, b, AT(angles, cosines + turn), AT(angles, cosines + quarter + turn));
      if (in_place) {
        store(from + first, a);
        store(from + second, b);
      } else if (room) {
        APPEND(first, a)
        APPEND(second, b)
      }
    }
    for (uint w = params.rotary_size / 2 + LANE; w < words; w += LANES) {
      vec2 value = load(from + w);
      if (GAINS != 0) value *= scale * AT(gains, gain + w);
      if (in_place) {
        store(from + w, value);
      } else if (room) {
        APPEND(w, value)
      }
    }
  }
#if defined(WEIGHT_Q8_0) && !defined(KEYS_IN_PLACE)
  if (head >= params.heads) store_staged(place, head - params.heads, room);
#endif
}

void main() {
  uint heads = params.heads + (params.value_size == 0u ? 1 : 2) * params.kv_heads;
  for (uint query = gl_WorkGroupID.y; query < params.tokens; query += gl_NumWorkGroups.y) {
    for (uint head = gl_WorkGroupID.x; head < heads; head += gl_NumWorkGroups.x)
      serve(head, query, gl_WorkGroupID.z);
  }
}
