// Parameters of the attention family.
#ifndef MULCIBER_SHADERS_ATTENTION_H
#define MULCIBER_SHADERS_ATTENTION_H

#ifdef __cplusplus
#include "shaders/include/interface.h"
#endif

// Sizes are constants so that loops have fixed bounds: one pipeline per pair of head sizes.
#define CONSTANT_HEAD_SIZE (CONSTANT_OP + 0)
#define CONSTANT_VALUE_SIZE (CONSTANT_OP + 1)
#define CONSTANT_CAUSAL (CONSTANT_OP + 2)
#define CONSTANT_ANCESTRY (CONSTANT_OP + 3)

// Buffers: 0 q, 1 kv, 2 result, 3 control. All queries that read one row of keys (rows_per_kv rows of
// q_len each) are numbered as one list, so that beams over one sentence share a tile. Offsets and
// strides count elements.
SHADER_STRUCT(AttentionParams) {
  uint queries;          // per row of keys: rows_per_kv * q_len
  uint q_len;
  uint kv_len;
  uint group;            // query heads per key head
  uint q_columns;
  uint q_first;
  uint kv_columns;
  uint k_first;
  uint v_first;
  uint first_kv_row;     // of this slice, as control counts rows
  int key_counts;        // offsets into control, -1: absent
  uint key_count_stride;
  uint key_count_extra;
  int ancestry;
  int head_mask;
  float scale;
}
SHADER_STRUCT_END

// Buffers: 0 x, 1 cache, 2 control.
SHADER_STRUCT(AppendCacheParams) {
  uint q_len;
  uint capacity;
  uint columns;          // of the cache
  uint x_columns;
  uint x_first;
  uint position_offset;  // into control
}
SHADER_STRUCT_END

#endif
