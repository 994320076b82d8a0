// Rotary position embedding with the write into the cache: its parameters.
#ifndef MULCIBER_SHADERS_ROPE_H
#define MULCIBER_SHADERS_ROPE_H

#ifdef __cplusplus
#include "shaders/include/interface.h"
#endif

// Specialization constants.
// 1: pairs are neighbours, 0: elements i and i + rotary_size / 2
#define ROPE_INTERLEAVED (CONSTANT_OP + 0)
#define ROPE_GAINS (CONSTANT_OP + 1)  // 1: heads are normalized first
// 1: the number of pairs is odd, so pairs share words
#define ROPE_ODD_PAIRS (CONSTANT_OP + 2)

// Columns of the largest head for a cache of a block type: the head is staged in shared memory.
#define ROPE_MOST_STAGED 1024
// Most rotated elements of a head with an odd number of pairs, which are staged as well.
#define ROPE_MOST_ODD 256

// Buffers: 0 qkv, 1 control, 2 angles, 3 gains, 4 cache (in rows that write it).
SHADER_STRUCT(RopeAppendParams) {
  uint tokens;  // tokens of each row
  uint heads;
  uint kv_heads;
  uint head_size;
  uint rotary_size;
  uint context;
  uint angle_rows;
  uint positions;  // word of control, for the first row of this dispatch
  uint position_stride;
  float epsilon;
  uint value_size;  // size of a head of values; 0: none
  uint pages;       // like positions, for a paged cache (cache_pages.h)
}
SHADER_STRUCT_END

#endif
