/* Mulciber for C: attention of every kind without a model: a description, input arrays, output
 * arrays. The rules are those of mulciber/attention.h; docs/reference/attention.md has formulas and
 * sources. mulciber/c/attention_task.h has the maps of models. C11. */
#ifndef MULCIBER_C_ATTENTION_H
#define MULCIBER_C_ATTENTION_H

#include "mulciber/c/context.h"
#include "mulciber/c/result.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Values and their shape, row-major, outermost dimension first. */
typedef struct MulciberFloatArray {
  uint32_t size;
  uint32_t rank;         /* dimensions, at most 8 */
  const uint64_t* shape; /* rank extents */
  const float* values;   /* as many as the product of the extents; NULL where that is 0 */
} MulciberFloatArray;

/* y = x W^T + b over the last dimension. */
typedef struct MulciberProjection {
  uint32_t size;
  uint32_t bias_count;
  const float* bias; /* a value for each column of y; count 0: none */
  /* (out, in), or (heads, out, in), where each head's matrix reads that head's columns of x. */
  const MulciberFloatArray* weight;
} MulciberProjection;

/* How a query and a key are combined into a score, before the scale. */
typedef enum MulciberAttentionScore {
  MULCIBER_SCORE_DOT = 0,      /* q . k */
  MULCIBER_SCORE_ADDITIVE = 1, /* v . tanh(q + k) */
  MULCIBER_SCORE_LEAKY = 2,    /* v . leaky_relu(q + k) */
  MULCIBER_SCORE_DISTANCE = 3, /* -|q - k|^2 */
  MULCIBER_SCORE_MAX = 0x7fffffff
} MulciberAttentionScore;

/* Adds -slope * |distance| to scores. */
typedef struct MulciberAlibiBias {
  uint32_t size;
  uint32_t slope_count;
  const float* slopes; /* one for each head; count 0: the paper's slopes */
} MulciberAlibiBias;

/* Adds table[bucket(distance), head] to scores. */
typedef struct MulciberT5Bias {
  uint32_t size;
  uint32_t max_distance;           /* 0: 128 */
  const MulciberFloatArray* table; /* (buckets, heads) */
  MulciberBool unidirectional;     /* keys after the query use the bucket of distance 0 */
} MulciberT5Bias;

/* Lists of blocks, one after another: list i is blocks[offsets[i]] to blocks[offsets[i + 1]]. */
typedef struct MulciberBlockLists {
  uint32_t size;
  uint32_t count;          /* lists */
  const uint32_t* offsets; /* count + 1, ascending from 0 */
  const uint32_t* blocks;  /* ascending in each list */
} MulciberBlockLists;

/* Global tokens beside MulciberAttentionDescription::window. */
typedef struct MulciberLongformer {
  uint32_t size;
  uint32_t block; /* keys that a kernel visits or skips together; 0: 64 */
  const uint32_t* global_tokens;
  uint32_t global_count;
} MulciberLongformer;

/* Blocks of keys that a block of queries attends to: its window, global blocks and random blocks.
 */
typedef struct MulciberBigBird {
  uint32_t size;
  uint32_t block;         /* 0: 64 */
  uint32_t window_blocks; /* to each side; 0: the block itself alone */
  uint32_t global_count;
  const uint32_t* global_blocks;
  /* For each block of queries, see mulciber_random_blocks(); NULL: none. */
  const MulciberBlockLists* random_blocks;
} MulciberBigBird;

/* List b has the blocks of keys that queries b * block_queries to (b + 1) * block_queries - 1
 * attend to. Blocks of 1 by 1 describe a graph. */
typedef struct MulciberListedKeys {
  uint32_t size;
  uint32_t block_queries, block_keys; /* 0: 1 */
  const MulciberBlockLists* lists;
} MulciberListedKeys;

/* Multiplies attention weights with exp(-distance^2 / (2 sigma^2)) around a center: the query's
 * position, or one that is predicted where `hidden` and `out` are given. */
typedef struct MulciberLocalAttention {
  uint32_t size;
  uint32_t reach;                   /* keys farther from the center are masked; 0: none */
  const MulciberProjection* hidden; /* to (heads * n); NULL with out: not predicted */
  const MulciberProjection* out;    /* to (heads) */
  float sigma;                      /* 0: weights do not fall off */
} MulciberLocalAttention;

/* Computes one key and one value from every `stride` positions, by convolutions whose stride is
 * their length. */
typedef struct MulciberMemoryCompression {
  uint32_t size;
  uint32_t keys_bias_count, values_bias_count; /* 0: none */
  const MulciberFloatArray* keys;              /* (out, in, stride) */
  const MulciberFloatArray* values;
  const float* keys_bias;
  const float* values_bias;
} MulciberMemoryCompression;

/* Operations run in this order: projections, score, scale, soft cap, bias, masks, softmax, product
 * with the values. */
typedef struct MulciberAttentionDescription {
  uint32_t size;
  uint32_t heads;                  /* 0: 1 */
  const MulciberProjection* query; /* NULL: the input is used unprojected, as for key and value */
  const MulciberProjection* key;
  const MulciberProjection* value;
  const MulciberProjection* output; /* projects the results of all heads; NULL: none */
  uint32_t kv_heads;                /* divides heads; 0: as many */
  MulciberAttentionScore score;
  float scale;               /* 0: head_size^-0.5 for MULCIBER_SCORE_DOT, else 1 */
  float leaky_slope;         /* for MULCIBER_SCORE_LEAKY; 0: 0.2 */
  float soft_cap;            /* s becomes soft_cap * tanh(s / soft_cap); 0: off */
  uint32_t vector_count;     /* heads * head_size for ADDITIVE and LEAKY, else 0 */
  const float* score_vector; /* v */
  /* At most one bias, and at most one pattern; NULL: none. */
  const MulciberAlibiBias* alibi;
  const MulciberT5Bias* t5;
  const MulciberLongformer* longformer;
  const MulciberBigBird* bigbird;
  const MulciberListedKeys* listed;
  MulciberBool causal; /* a query attends to keys up to its position */
  uint32_t window;     /* a query attends to keys nearer than this to its position; 0: all */
  MulciberBool hard;   /* the largest score, of equals the first, takes all weight */
  MulciberBool half;   /* store queries, keys, values and weights in 16 bits; sums stay in 32 */
  const MulciberLocalAttention* local;
  const MulciberMemoryCompression* compression;
  const float* head_mask; /* a factor for the result of each head; count 0: all 1 */
  uint32_t head_mask_count;
} MulciberAttentionDescription;

/* One attention on a device. It keeps its weights there, and the program of the last call, which a
 * call with the same shapes runs again. */
typedef struct MulciberAttention MulciberAttention;

/* Copies the description's arrays to the device. MULCIBER_ERROR_SETTING when shapes disagree. */
MULCIBER_API MulciberStatus mulciber_create_attention(
    MulciberContext* context, MulciberDevice* device,
    const MulciberAttentionDescription* description, MulciberAttention** attention);
MULCIBER_API void mulciber_destroy_attention(MulciberAttention* attention);

/* Frees the program of the last call and its arrays on the device. freed: bytes that went back to
 * the driver or the application; may be NULL. */
MULCIBER_API MulciberStatus mulciber_trim_attention(MulciberContext* context,
                                                    MulciberAttention* attention, uint64_t* freed);

typedef struct MulciberAttentionInputs {
  uint32_t size;
  uint32_t key_count_count; /* batch entries of keys; 0: every key is valid */
  /* keys, values: (batch, kv_len, columns). queries: (batch, q_len, columns); (batch * n, q_len,
   * columns), where n consecutive entries share one entry of keys; or (1, q_len, columns), which
   * every batch entry uses. The columns hold all heads, one after another. Equal pointers: one
   * array, which is copied once. */
  const MulciberFloatArray* queries;
  const MulciberFloatArray* keys;
  const MulciberFloatArray* values;
  /* Values added to scores: (1 or batch, 1 or heads, q_len, kv_len, or compressed keys). Values
   * below -1e30 mask a key. NULL: none; a mask and a bias exclude each other. */
  const MulciberFloatArray* mask;
  const uint32_t* key_counts; /* valid keys of each batch entry; padding follows them */
  MulciberBool has_query_offset;
  int32_t query_offset; /* position of the first query among the keys; otherwise the last query is
                         * at the last key's position */
} MulciberAttentionInputs;

/* Computes the attention of arrays in memory; submits and waits. output: (queries' batch, q_len,
 * heads * value columns, or the columns of the output projection). weights: (queries' batch, heads,
 * q_len, kv_len) probabilities; NULL: they are not computed. A query whose keys are all masked
 * gives zeros. MULCIBER_ERROR_SETTING names the array that does not fit, MULCIBER_ERROR_KERNEL says
 * why no kernel fits the device. */
MULCIBER_API MulciberStatus mulciber_compute_attention(
    MulciberContext* context, MulciberAttention* attention, const MulciberAttentionInputs* inputs,
    MulciberResult** result, const MulciberFloatArray** output, const MulciberFloatArray** weights);

/* Draws `each` different blocks of `blocks`, or all where there are fewer, for every block, in
 * ascending order: lists for MulciberBigBird::random_blocks. Equal seeds give equal lists on every
 * platform. */
MULCIBER_API MulciberStatus mulciber_random_blocks(MulciberContext* context, uint32_t blocks,
                                                   uint32_t each, uint32_t seed,
                                                   MulciberResult** result,
                                                   const MulciberBlockLists** lists);

#ifdef __cplusplus
}
#endif

#endif
