// Looks up rows of the token table, scaled, plus rows of the position table. One invocation per
// unit of the result: four elements (VECTOR), or one, or for f16 results the two of a word.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "interface.h"
#include "embedding.h"
#define BUFFER_COUNT 4
#include "buffers.glsl"
#include "types.glsl"

layout(constant_id = EMBEDDING_POSITIONS) const uint POSITIONS = 0;

PARAMS(EmbeddingParams)
BUFFER(1, readonly, control, uint)

struct Source {
  uint table_row;  // within this node's slices
  uint position_row;
  bool here;
};

Source source_of(uint token) {
  uint number = params.first_token + token;
  uint id = min(AT(control, params.ids + number), params.vocabulary - 1);
  Source source;
  source.table_row = id - params.table_begin;
  source.here = id >= params.table_begin && id < params.table_end;
  source.position_row = 0;
  if (POSITIONS == 1) {
    // Both sides of a choice may be loaded, so the address must be valid either way.
    bool given = params.first_positions != EMBEDDING_NO_POSITIONS;
    uint row = number / params.row_length;
    uint word = AT(control, given ? params.first_positions + row * params.position_stride : 0);
    uint first = given ? word : 0;
    uint position =
        min(min(first, params.positions) + number - row * params.row_length, params.positions - 1);
    source.position_row = position - params.position_begin;
    source.here =
        source.here && position >= params.position_begin && position < params.position_end;
  }
  return source;
}

#ifdef VECTOR

BUFFER(2, readonly, positions, vec4)
#if defined(WEIGHT_BLOCKS)
#define BLOCKS_BUFFER 0
#define BLOCKS_COLUMNS params.columns
#include "blocks.glsl"
vec4 entry(uint row, uint unit) { return block_quad(row, unit * 4); }
#elif defined(WEIGHT_HALF)
BUFFER(0, readonly, table, uvec2)
vec4 entry(uint row, uint unit) {
  return unpack_weight4(AT(table, row * (params.columns / 4) + unit));
}
#else
BUFFER(0, readonly, table, vec4)
vec4 entry(uint row, uint unit) { return AT(table, row * (params.columns / 4) + unit); }
#endif
#ifdef ACTIVATION_F16
BUFFER(3, writeonly, y, uvec2)
uvec2 pack(vec4 value) { return uvec2(packHalf2x16(value.xy), packHalf2x16(value.zw)); }
#else
BUFFER(3, writeonly, y, vec4)
vec4 pack(vec4 value) { return value; }
#endif

void main() {
#ifdef WEIGHT_GRIDS
  fill_grid();
#endif
  uint row_units = params.columns / 4;
  uint units = params.tokens * row_units;
  uint stride = gl_NumWorkGroups.x * LOCAL_SIZE;
  for (uint unit = gl_GlobalInvocationID.x; unit < units; unit += stride) {
    uint token = unit / row_units;
    uint column = unit - token * row_units;
    Source source = source_of(token);
    if (!source.here) continue;
    vec4 value = entry(source.table_row, column) * params.scale;
    if (POSITIONS == 1) value += AT(positions, source.position_row * row_units + column);
    AT(y, unit) = pack(value);
  }
}

#else

BUFFER(2, readonly, positions, float)
#ifdef WEIGHT_HALF
BUFFER(0, readonly, table, uint)
float entry(uint i) { return unpack_weight2(AT(table, i / 2))[i % 2]; }
#else
BUFFER(0, readonly, table, float)
float entry(uint i) { return AT(table, i); }
#endif

float value_of(Source source, uint column) {
  float value = entry(source.table_row * params.columns + column) * params.scale;
  if (POSITIONS == 1) value += AT(positions, source.position_row * params.columns + column);
  return value;
}

#ifdef ACTIVATION_F16
BUFFER(3, , y, uint)
void main() {
  uint elements = params.tokens * params.columns;
  uint stride = gl_NumWorkGroups.x * LOCAL_SIZE;
  for (uint word = gl_GlobalInvocationID.x; word < (elements + 1) / 2; word += stride) {
    // The other half may belong to another node and must not change.
    vec2 pair = vec2(0);
    uint mask = 0;
    for (uint part = 0; part < 2 && word * 2 + part < elements; ++part) {
      uint token = (word * 2 + part) / params.columns;
      Source source = source_of(token);
      if (!source.here) continue;
      pair[part] = value_of(source, word * 2 + part - token * params.columns);
      mask |= part == 0 ? 0xffffu : 0xffff0000u;
    }
    if (mask == 0) continue;
    uint bits = packHalf2x16(pair);
    if (mask != 0xffffffffu) bits = (bits & mask) | (AT(y, word) & ~mask);
    AT(y, word) = bits;
  }
}
#else
BUFFER(3, writeonly, y, float)
void main() {
  uint elements = params.tokens * params.columns;
  uint stride = gl_NumWorkGroups.x * LOCAL_SIZE;
  for (uint i = gl_GlobalInvocationID.x; i < elements; i += stride) {
    uint token = i / params.columns;
    Source source = source_of(token);
    if (source.here) AT(y, i) = value_of(source, i - token * params.columns);
  }
}
#endif

#endif
