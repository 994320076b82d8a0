// Common parts of all attention kernels: buffers, sizes, masks. A kernel that reads vectors defines
// READ_VECTORS, which needs sizes, strides and offsets in fours. With READ_TEXELS it also reads q
// in f32, and keys and values in f32 or f16, through texel buffers, which needs all of them in
// eights.
#ifndef MULCIBER_ATTENTION_COMMON_GLSL
#define MULCIBER_ATTENTION_COMMON_GLSL

#if defined(APPENDS)
#define BUFFER_COUNT 7
#elif defined(SPLIT_KEYS)
#define BUFFER_COUNT 5
#else
#define BUFFER_COUNT 4
#endif
#include "buffers.glsl"
#include "blocks.h"
#include "cache_pages.h"
#include "tanh.glsl"

PARAMS(AttentionParams)
BUFFER(3, readonly, control, uint)

layout(constant_id = CONSTANT_HEAD_SIZE) const uint HEAD_SIZE = 64;
layout(constant_id = CONSTANT_VALUE_SIZE) const uint VALUE_SIZE = 64;
layout(constant_id = CONSTANT_CAUSAL) const uint CAUSAL = 0;
layout(constant_id = CONSTANT_ANCESTRY) const uint ANCESTRY = 0;
layout(constant_id = CONSTANT_WINDOWED) const uint WINDOWED = 0;
layout(constant_id = CONSTANT_SOFT_CAPPED) const uint SOFT_CAPPED = 0;
layout(constant_id = CONSTANT_PACK) const uint PACK = 1;
layout(constant_id = CONSTANT_BIAS) const uint BIAS = BIAS_NONE;
layout(constant_id = CONSTANT_BIAS_SPAN) const uint BIAS_SPAN = 0;
layout(constant_id = CONSTANT_PATTERN_QUERIES) const uint PATTERN_QUERIES = 0;
layout(constant_id = CONSTANT_PATTERN_KEYS) const uint PATTERN_KEYS = 1;
layout(constant_id = CONSTANT_PATTERN_BLOCKS) const uint PATTERN_BLOCKS = 0;
layout(constant_id = CONSTANT_GLOBALS) const uint GLOBALS = 0;
layout(constant_id = CONSTANT_SINKS) const uint SINKS = 0;
layout(constant_id = CONSTANT_NUM_SPLITS) const uint NUM_SPLITS = 1;

// The workgroup's tile of queries. Neighbouring workgroups take other splits of the same keys
// (attention_split_keys.glsl).
#define QUERY_TILE (gl_WorkGroupID.x / NUM_SPLITS)

// Whether queries may see different keys.
const bool MASKED = CAUSAL != 0 || WINDOWED != 0 || BIAS >= BIAS_MASK || GLOBALS != 0;

// Storage f16 is read as 32-bit words, which needs no 16-bit feature of the device.
float half_of(uint word, uint index) {
  vec2 pair = unpackHalf2x16(word);
  return (index & 1u) == 0u ? pair.x : pair.y;
}

vec4 half4_of(uvec2 words) { return vec4(unpackHalf2x16(words.x), unpackHalf2x16(words.y)); }

// Keys and values are read at a column of a position; key_base() gives the start of a position.
#ifdef WEIGHT_Q8_0
// A position is a row of blocks.h: its numbers as bytes, then its scales. So four columns are a
// word, wherever they lie, eight neighbours an aligned pair of words, and one more word holds the
// scales of 64 columns: a lane's reads of a key are as dense as in f16. With scales between the
// numbers, like in files, words would cross blocks.
BUFFER(1, readonly, kv, uint)
float kv_scale(uint base, uint column) {
  return half_of(AT(kv, base + BLOCKS_SCALES_AT(BLOCKS_Q8_0, params.kv_columns) + column / 64u),
                 column / 32u);
}
float kv_number(uint word, uint byte) {
  return float(int((word >> (8u * byte)) & 255u)) - float(BLOCKS_OFFSET(BLOCKS_Q8_0));
}
#endif

#ifdef READ_VECTORS

#ifdef ACTIVATION_F16
BUFFER(0, readonly, q, uvec2)
vec4 q_at(uint element) { return half4_of(AT(q, element >> 2)); }
#elif defined(READ_TEXELS)
TEXELS(0, q)
vec4 q_at(uint element) { return uintBitsToFloat(TEXEL(q, element >> 2)); }
#else
BUFFER(0, readonly, q, vec4)
vec4 q_at(uint element) { return AT(q, element >> 2); }
#endif

#if defined(WEIGHT_Q8_0)
vec4 kv_numbers(uint word) {
  return vec4(kv_number(word, 0), kv_number(word, 1), kv_number(word, 2), kv_number(word, 3));
}
vec4 kv_at(uint base, uint column) {
  return kv_scale(base, column) * kv_numbers(AT(kv, base + (column >> 2)));
}
#elif defined(READ_TEXELS) && defined(WEIGHT_F16)
TEXELS(1, kv)
vec4 kv_at(uint base, uint column) {
  const uint at = base + column;
  const uvec4 eight = TEXEL(kv, at >> 3);
  return half4_of((at & 4u) == 0u ? eight.xy : eight.zw);
}
#elif defined(READ_TEXELS)
TEXELS(1, kv)
vec4 kv_at(uint base, uint column) { return uintBitsToFloat(TEXEL(kv, (base + column) >> 2)); }
#elif defined(WEIGHT_F16)
BUFFER(1, readonly, kv, uvec2)
vec4 kv_at(uint base, uint column) { return half4_of(AT(kv, (base + column) >> 2)); }
#else
BUFFER(1, readonly, kv, vec4)
vec4 kv_at(uint base, uint column) { return AT(kv, (base + column) >> 2); }
#endif
/// Columns [column, column + 8) of a position; column is a multiple of eight.
void kv_eight(uint base, uint column, out vec4 low, out vec4 high) {
#ifdef WEIGHT_Q8_0
  float scale = kv_scale(base, column);
  low = scale * kv_numbers(AT(kv, base + (column >> 2)));
  high = scale * kv_numbers(AT(kv, base + (column >> 2) + 1u));
#elif defined(READ_TEXELS) && defined(WEIGHT_F16)
  const uvec4 eight = TEXEL(kv, (base + column) >> 3);
  low = half4_of(eight.xy);
  high = half4_of(eight.zw);
#else
  low = kv_at(base, column);
  high = kv_at(base, column + 4u);
#endif
}

#else

#ifdef ACTIVATION_F16
BUFFER(0, readonly, q, uint)
float q_at(uint element) { return half_of(AT(q, element >> 1), element); }
#else
BUFFER(0, readonly, q, float)
float q_at(uint element) { return AT(q, element); }
#endif

#if defined(WEIGHT_Q8_0)
float kv_at(uint base, uint column) {
  return kv_scale(base, column) * kv_number(AT(kv, base + (column >> 2)), column & 3u);
}
#elif defined(WEIGHT_F16)
BUFFER(1, readonly, kv, uint)
float kv_at(uint base, uint column) { return half_of(AT(kv, (base + column) >> 1), base + column); }
#else
BUFFER(1, readonly, kv, float)
float kv_at(uint base, uint column) { return AT(kv, base + column); }
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
// With odd sizes two workgroups may own one half of a word each, so each half is inserted
// separately.
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

// A score below every real one; masks exclude its key, not the small score itself. A bias that
// makes a score as small is a mask.
const float kMasked = -1e30;

uint query_heads() { return gl_NumWorkGroups.y * PACK; }

// Query n of the list of a row of keys: its row of q and of the result, its head, and its elements
// in them.
uint query_row(uint kv_row, uint n) { return kv_row * (params.queries / PACK) + n / PACK; }
uint query_head(uint n) { return gl_WorkGroupID.y * PACK + n % PACK; }
uint key_head() { return gl_WorkGroupID.y * PACK / params.group; }
uint q_element(uint kv_row, uint n) {
  return query_row(kv_row, n) * params.q_columns + params.q_first + query_head(n) * HEAD_SIZE;
}
uint result_element(uint kv_row, uint n) {
  return (query_row(kv_row, n) * query_heads() + query_head(n)) * VALUE_SIZE;
}

/// Number of a row's keys by control's count, which may exceed the existing keys.
int key_count(uint kv_row) {
  if (params.key_counts < 0) return int(params.kv_len);
  uint at = uint(params.key_counts) + (params.first_kv_row + kv_row) * params.key_count_stride;
  return int(min(AT(control, at) + params.key_count_extra, 0x3fffffffu));
}

/// Position of query n of the list among the keys.
int position_of(uint n, int count) {
  int first = params.query_offset == QUERY_OFFSET_FROM_COUNT ? count - int(params.q_len)
                                                             : params.query_offset;
  return first + int(n / PACK % params.q_len);
}

/// Keys [x, y), outside of which query n of the list sees nothing.
uvec2 visible_keys(uint n, int count) {
  int first = 0, end = min(count, int(params.kv_len));
  if (CAUSAL != 0u || WINDOWED != 0u) {
    int position = position_of(n, count);
    if (WINDOWED != 0u && GLOBALS == 0u) {
      first = max(position - int(params.window) + 1, 0);
      end = min(end, position + int(params.window));
    }
    if (CAUSAL != 0u) end = min(end, position + 1);
  }
  end = max(end, 0);
  return uvec2(min(first, end), end);
}

#ifdef BLOCK_SPARSE
/// Global tokens see all tokens and all tokens see them; the others see only their window.
bool is_global(int position) {
  uint at = uint(max(position, 0));
  if (position < 0 || at >= params.kv_len) return false;
  return ((AT(control, uint(params.globals) + at / 32u) >> (at % 32u)) & 1u) != 0u;
}
bool global_allows(int position, uint key) {
  if (GLOBALS == 0u || WINDOWED == 0u) return true;
  return abs(position - int(key)) < int(params.window) || is_global(int(key)) ||
         is_global(position);
}

/// A run of neighbouring keys, [key, end), and the rest of the list of blocks: words `entry` to
/// `last` of control are the indices of the next blocks.
struct KeyRun {
  uint key, end, entry, last;
};

/// The next run of listed keys within a range; neighbouring blocks make one run. An empty run ends
/// the list.
KeyRun next_run(KeyRun run, uvec2 range) {
  run.key = range.y;
  run.end = range.y;
  if (PATTERN_QUERIES == 0u) return run;
  bool found = false;
  while (run.entry < run.last && !found) {
    uint block = AT(control, run.entry), blocks = 1u;
    ++run.entry;
    while (run.entry < run.last && AT(control, min(run.entry, run.last - 1u)) == block + blocks) {
      ++run.entry;
      ++blocks;
    }
    uint first = max(block * PATTERN_KEYS, range.x),
         end = min((block + blocks) * PATTERN_KEYS, range.y);
    found = first < end;
    if (found) {
      run.key = first;
      run.end = end;
    }
  }
  return run;
}

/// The first run of the keys that query n sees, within a range.
KeyRun first_run(uint n, int count, uvec2 range) {
  if (PATTERN_QUERIES == 0u) return KeyRun(range.x, range.y, 0u, 0u);
  int position = position_of(n, count);
  uint block = uint(max(position, 0)) / max(PATTERN_QUERIES, 1u), at = uint(params.pattern) + block;
  KeyRun run = KeyRun(0u, 0u, 0u, 0u);
  if (position >= 0 && block < PATTERN_BLOCKS) {
    run.entry = uint(params.pattern) + AT(control, at);
    run.last = uint(params.pattern) + AT(control, at + 1u);
  }
  return next_run(run, range);
}

KeyRun step_run(KeyRun run, uint step, uvec2 range) {
  run.key += step;
  if (PATTERN_QUERIES != 0u && run.key >= run.end) return next_run(run, range);
  return run;
}
#endif

/// The score of a product of query and key before the softmax. `n` and `position` are used only
/// with a bias.
float score_of(float product, uint kv_row, uint n, int position, uint key) {
  float score = product * params.scale;
  if (SOFT_CAPPED != 0u) score = params.soft_cap * safe_tanh(score / params.soft_cap);
  if (BIAS == BIAS_NONE) return score;
  uint at = uint(params.bias) + key;
  if (BIAS == BIAS_RELATIVE) {
    int distance = clamp(int(key) - position, -int(BIAS_SPAN), int(BIAS_SPAN));
    at += query_head(n) * (2u * BIAS_SPAN + 1u) + BIAS_SPAN + uint(distance) - key;
  } else {
    uint query = query_row(params.first_kv_row + kv_row, n), line = 0;
    if ((BIAS & 1u) != 0u) line = query / params.q_len;
    if ((BIAS & 2u) != 0u) line = line * query_heads() + query_head(n);
    at += (line * params.q_len + query % params.q_len) * params.kv_len;
  }
  float bias = uintBitsToFloat(AT(control, at));
  // A mask hides even a NaN key, which max() might not.
  return bias < kMasked ? kMasked : score + bias;
}

/// Index of position `key` of a cache row among all positions of the cache.
uint key_place(uint kv_row, uint key) {
  uint row = kv_row;
  if (CACHE_PAGE != 0u) {
    uint at = PAGE_WORD(uint(params.key_table), params.first_kv_row + kv_row, params.kv_len, key);
    return PLACE_IN_PAGE(AT(control, at), key);
  }
  if (ANCESTRY != 0u) {
    uint at = uint(params.key_table) + (params.first_kv_row + kv_row) * params.kv_len + key;
    row = AT(control, at);
  }
  return row * params.kv_len + key;
}

/// Start of a position: an element, or for block types a word.
uint key_base(uint kv_row, uint key) {
#ifdef WEIGHT_Q8_0
  return key_place(kv_row, key) * BLOCKS_ROW_WORDS(BLOCKS_Q8_0, params.kv_columns);
#else
  return key_place(kv_row, key) * params.kv_columns;
#endif
}

float head_factor(uint head) {
  return params.head_mask < 0 ? 1.0 : uintBitsToFloat(AT(control, uint(params.head_mask) + head));
}

/// The logit of a head's sink, which joins the softmax without a value.
float sink_of(uint head) {
  return uintBitsToFloat(AT(control, uint(params.head_mask) + query_heads() + head));
}

/// The denominator of a softmax: the total weight of the keys, in which exp(maximum) counts as
/// `unit`, and the sink's weight. exp(80) is finite, and makes the keys negligible.
float with_sink(uint head, float maximum, float total, float unit) {
  return SINKS == 0u ? total : total + unit * exp(min(sink_of(head) - maximum, 80.0));
}

#endif
