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
#define CONSTANT_WINDOWED (CONSTANT_OP + 4)     // 1: params.window is used
#define CONSTANT_SOFT_CAPPED (CONSTANT_OP + 5)  // 1: params.soft_cap is used
// heads of a group that are packed into one list of queries
#define CONSTANT_PACK (CONSTANT_OP + 6)
#define CONSTANT_BIAS (CONSTANT_OP + 7)       // one of BIAS_...
#define CONSTANT_BIAS_SPAN (CONSTANT_OP + 8)  // for BIAS_RELATIVE

// Constants of rows that serve every kind of attention:
#define CONSTANT_SCORE (CONSTANT_OP + 9)    // one of SCORE_...
#define CONSTANT_SLOPE (CONSTANT_OP + 10)   // float, for SCORE_LEAKY
#define CONSTANT_HARD (CONSTANT_OP + 11)    // 1: the first key of the largest score takes all
#define CONSTANT_CENTER (CONSTANT_OP + 12)  // one of CENTER_...
// float, for CENTER_PREDICTED: keys farther away are hidden; 0: none
#define CONSTANT_REACH (CONSTANT_OP + 13)
// float: weights are multiplied by exp(-narrowness * distance^2)
#define CONSTANT_NARROWNESS (CONSTANT_OP + 14)
#define CONSTANT_TILE (CONSTANT_OP + 15)  // queries of a workgroup, up to 4
// Constants of rows with block-sparse patterns:
#define CONSTANT_PATTERN_QUERIES (CONSTANT_OP + 16)  // positions per block; 0: no pattern
#define CONSTANT_PATTERN_KEYS (CONSTANT_OP + 17)     // keys per block
#define CONSTANT_PATTERN_BLOCKS (CONSTANT_OP + 18)   // number of blocks of positions
#define CONSTANT_GLOBALS (CONSTANT_OP + 19)          // 1: params.globals is used

// Constants of rows that split the keys (attention_split_keys.glsl):
#define CONSTANT_NUM_SPLITS (CONSTANT_OP + 20)  // workgroups for one tile of queries
// word of control: counters of finished workgroups
#define CONSTANT_SPLIT_COUNTERS (CONSTANT_OP + 21)
// Constants of rows that append keys and values to the cache first (attention_append.glsl):
#define CONSTANT_ROTARY_SIZE (CONSTANT_OP + 22)  // 0: queries and keys are not rotated
#define CONSTANT_INTERLEAVED (CONSTANT_OP + 23)  // see ROPE_INTERLEAVED
#define CONSTANT_GAINS (CONSTANT_OP + 24)        // see ROPE_GAINS
#define CONSTANT_EPSILON (CONSTANT_OP + 25)      // the bits of the norm's f32 epsilon
#define CONSTANT_ANGLE_ROWS (CONSTANT_OP + 26)   // positions of the table of angles

// Rows on matrix units: number of parts into which the keys of a tile of queries are split, one
// workgroup for each; attention_combine makes the result from their partial sums.
#define CONSTANT_KEY_PARTS (CONSTANT_OP + 27)

// 1: a logit per head, after the head mask, joins the softmax without a value
#define CONSTANT_SINKS (CONSTANT_OP + 28)

// Columns of the largest head.
#define MAX_HEAD_SIZE 256
// Keys that a split needs to pay for the combination: measured on two cores of a software driver;
// on GPUs two blocks.
#define MIN_KEYS_PER_SPLIT 256

#define SCORE_DOT 0
#define SCORE_ADDITIVE 1
#define SCORE_LEAKY 2
#define SCORE_DISTANCE 3
#define CENTER_NONE 0
#define CENTER_POSITION 1
#define CENTER_PREDICTED 2

// The bias of a scaled and capped score; see AttentionBias in ops/attention.h.
#define BIAS_NONE 0
#define BIAS_RELATIVE 1
#define BIAS_MASK 4  // plus 1 where rows differ, plus 2 where heads differ

// query_offset: the last query is at the last counted key.
#define QUERY_OFFSET_FROM_COUNT (-2147483647 - 1)

// Buffers: 0 q, 1 kv, 2 result, 3 control, 4 partial sums of rows that split the keys, 5 angles and
// 6 gains of rows that append keys and values first. All queries that read one row and head of keys
// form one list: rows_per_kv rows of q_len positions of PACK heads each. So beams over one
// sentence, and the heads of a group (grouped-query attention), share a tile. Offsets and strides
// count elements.
SHADER_STRUCT(AttentionParams) {
  uint queries;  // queries in the list: rows_per_kv * q_len * PACK
  uint q_len;
  uint kv_len;
  uint group;  // query heads per key head
  uint q_columns;
  uint q_first;
  uint kv_columns;
  uint k_first;
  uint v_first;
  uint first_kv_row;  // first row of this slice, in control's count of rows
  int key_counts;     // word of control where the array begins, -1: absent
  uint key_count_stride;
  uint key_count_extra;
  int key_table;  // for CONSTANT_ANCESTRY, or for pages (cache_pages.h)
  int head_mask;
  float scale;
  int query_offset;  // position among the keys of a row's first query
  uint window;
  float soft_cap;
  int bias;  // this and the following: like key_counts
  int pattern;
  int globals;
  int score_vector;
  int centers;
}
SHADER_STRUCT_END

// Buffers: 0 partial sums: for each line of the result (a head of a query) and each part of the
// keys the sums, then four floats: their maximum, their total, and the logit of the sink with the
// factor of its weight (only the first part's are used; factor 0: no sink); 1 result.
SHADER_STRUCT(AttentionCombineParams) {
  uint lines;
  uint parts;
  uint quads;  // vec4s in a line of the result
}
SHADER_STRUCT_END

// Buffers: 0 x, 1 cache, 2 control.
SHADER_STRUCT(AppendCacheParams) {
  uint q_len;
  uint context;
  uint columns;  // columns of the cache
  uint x_columns;
  uint x_first;
  uint positions;  // word of control, for the first row of this dispatch
  uint position_stride;
  uint pages;  // likewise, for a paged cache (cache_pages.h)
}
SHADER_STRUCT_END

#endif
