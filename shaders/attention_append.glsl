// Attention of one position that first does what rope_append.comp (or append_cache.comp, without
// rotation) does: q holds queries, keys and values of the position side by side, as computed by
// their product. Workgroups do not wait for each other, so each rotates its queries itself, and
// each whose keys include the position's computes its key and value itself. One workgroup per head
// of keys writes both into the cache, where no workgroup reads them. They are rounded like in the
// cache, so the bits are those of two dispatches. Include after `maxima`, shared memory that is
// unused here.
#ifndef MULCIBER_ATTENTION_APPEND_GLSL
#define MULCIBER_ATTENTION_APPEND_GLSL

layout(constant_id = CONSTANT_ROTARY_SIZE) const uint ROTARY_SIZE = 0;
layout(constant_id = CONSTANT_INTERLEAVED) const uint INTERLEAVED = 0;
layout(constant_id = CONSTANT_GAINS) const uint GAINS = 0;
layout(constant_id = CONSTANT_EPSILON) const uint EPSILON = 0;
layout(constant_id = CONSTANT_ANGLE_ROWS) const uint ANGLE_ROWS = 1;

BUFFER(5, readonly, angles, vec2)
BUFFER(6, readonly, gains, vec2)
#ifdef ACTIVATION_F16
BUFFER(0, readonly, qkv, uint)
vec2 load(uint word) { return unpackHalf2x16(AT(qkv, word)); }
// A query that is rotated in memory is rounded there.
vec2 rounded(vec2 value) { return unpackHalf2x16(packHalf2x16(value)); }
#else
BUFFER(0, readonly, qkv, vec2)
vec2 load(uint word) { return AT(qkv, word); }
vec2 rounded(vec2 value) { return value; }
#endif
#include "rotation.glsl"

#ifdef WEIGHT_Q8_0
#define CACHE_BUFFER 1
#include "store_blocks.glsl"
#else
BUFFER(1, writeonly, cache, uvec2)
#endif

const uint kHeadLanes = 32;  // invocations per head, like in rope_append.comp
const uint kSlotWords = MAX_HEAD_SIZE / 2, kNewestQuads = MAX_HEAD_SIZE / 4;
shared vec2 heads[(kMaxQueries + 2) * kSlotWords];  // queries, then the key and the value
shared vec4 newest[2 * kNewestQuads];               // key and value in the cache's precision

/// Sums over the invocations of a head, in the order of reduce.glsl.
float head_add(float value) {
  const uint at = gl_LocalInvocationIndex, lane = at % kHeadLanes;
  barrier();
  maxima[at] = value;
  barrier();
  for (uint half_size = kHeadLanes / 2; half_size > 0; half_size /= 2) {
    if (lane < half_size) maxima[at] = maxima[at] + maxima[at + half_size];
    barrier();
  }
  return maxima[at - lane];
}

/// Writes head `head` of the position into a slot, if there is one (`there`). All invocations must
/// call this together.
void stage_head(uint kv_row, uint head, uint slot, bool there, uint position) {
  const uint query_count = query_heads(), key_heads = gl_NumWorkGroups.y;
  const uint words = there ? HEAD_SIZE / 2 : 0, quarter = ROTARY_SIZE / 4;
  const uint lane = gl_LocalInvocationIndex % kHeadLanes;
  const uint from = kv_row * (params.q_columns / 2) + head * (HEAD_SIZE / 2);
  const uint to = slot * kSlotWords;
  const bool turns = head < query_count + key_heads;
  const uint gain = head >= query_count ? HEAD_SIZE / 2 : 0;
  float scale = 1.0;
  if (GAINS != 0) {
    // Not the constant: rope_append.comp divides by a parameter, and compilers round the two
    // differently.
    const uint columns = params.q_columns / (query_count + 2 * key_heads);
    scale = head_scale(head_add(squares_of(from, words, lane, kHeadLanes)), columns,
                       uintBitsToFloat(EPSILON));
  }
  const uint cosines = min(position, ANGLE_ROWS - 1) * 2 * quarter;
  const uint end = there && turns ? quarter : 0;
  for (uint turn = lane; turn < end; turn += kHeadLanes) {
    uvec2 at = words_of_turn(turn, quarter);
    vec2 a = load(from + at.x), b = load(from + at.y);
    if (GAINS != 0) {
      a *= scale * AT(gains, gain + at.x);
      b *= scale * AT(gains, gain + at.y);
    }
    rotate(a, b, AT(angles, cosines + turn), AT(angles, cosines + quarter + turn));
    heads[to + at.x] = a;
    heads[to + at.y] = b;
  }
  for (uint w = 2 * end + lane; w < words; w += kHeadLanes) {
    vec2 value = load(from + w);
    if (GAINS != 0 && turns) value *= scale * AT(gains, gain + w);
    heads[to + w] = value;
  }
}

/// Writes the workgroup's queries, and with `holds` the position's key and value, into `heads`.
void stage_heads(uint kv_row, uint first_query, uint position, bool holds) {
  const uint slots = TILE_Q + (holds ? 2 : 0), at_once = LOCAL_SIZE / kHeadLanes;
  for (uint first = 0; first < slots; first += at_once) {
    uint slot = first + gl_LocalInvocationIndex / kHeadLanes;
    uint head = query_head(min(first_query + slot, params.queries - 1));
    if (slot >= TILE_Q) head = query_heads() + (slot - TILE_Q) * gl_NumWorkGroups.y + key_head();
    stage_head(kv_row, head, slot, slot < slots, position);
  }
  barrier();
}

/// Four columns of a query of the workgroup.
vec4 staged_query(uint i, uint quad) {
  uint at = i * kSlotWords + 2 * quad;
  return vec4(rounded(heads[at]), rounded(heads[at + 1]));
}

/// Rounds the staged key and value into `newest`; with `writes` also writes them into the cache.
void keep_newest(uint kv_row, uint position, uint k_column, uint v_column, bool writes) {
#ifdef WEIGHT_Q8_0
  const uint blocks = HEAD_SIZE / 32;
  for (uint i = gl_LocalInvocationIndex; i < 2 * blocks; i += LOCAL_SIZE) {
    uint part = i / blocks, block = i % blocks;
    uint at = (TILE_Q + part) * kSlotWords + block * 16;
    vec4 quads[8];
    uint words[8];
    [[unroll]] for (uint quad = 0; quad < 8; ++quad) {
      quads[quad] = vec4(heads[at + 2 * quad], heads[at + 2 * quad + 1]);
    }
    uint scale = block_words(quads, words);
    [[unroll]] for (uint quad = 0; quad < 8; ++quad) {
      newest[part * kNewestQuads + block * 8 + quad] = half_of(scale, 0) * kv_numbers(words[quad]);
    }
    if (writes) {
      put_block(position_words(key_place(kv_row, position), params.kv_columns), params.kv_columns,
                (part == 0 ? k_column : v_column) / 32 + block, words, scale);
    }
  }
#else
  const uint quads = HEAD_SIZE / 4;
  for (uint i = gl_LocalInvocationIndex; i < 2 * quads; i += LOCAL_SIZE) {
    uint part = i / quads, quad = i % quads, at = (TILE_Q + part) * kSlotWords + 2 * quad;
    uvec2 words = uvec2(packHalf2x16(heads[at]), packHalf2x16(heads[at + 1]));
    newest[part * kNewestQuads + quad] = vec4(unpackHalf2x16(words.x), unpackHalf2x16(words.y));
    if (writes) {
      uint column = part == 0 ? k_column : v_column;
      uint first = key_place(kv_row, position) * params.kv_columns + column;
      AT(cache, first / 4 + quad) = words;
    }
  }
#endif
}

#endif
