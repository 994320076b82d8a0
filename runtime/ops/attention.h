// Scaled dot-product attention over many heads with an online softmax, and its map for reading.
#pragma once

#include <optional>

#include "runtime/program.h"

namespace mulciber {

/// Columns [first, first + heads * head_size) of a (rows, length, columns) tensor, head after head.
struct HeadColumns {
  Tensor tensor;
  uint32_t first = 0;
};

/// Numbers that change from run to run, in a u32 tensor that kernels read ("control"). Offsets count words
/// from its start; -1: absent.
struct AttentionControl {
  Tensor tensor;                // u32
  int32_t key_counts = -1;      // keys a row may see: control[key_counts + kv_row * stride] + extra
  uint32_t key_count_stride = 1;  // 1: one count per row of keys; 0: one for all
  uint32_t key_count_extra = 0;
  int32_t ancestry = -1;        // (q rows, key capacity): row of the cache that holds key t of a q row
  int32_t head_mask = -1;       // (heads) floats, multiplied onto each head's output
};

struct AttentionOptions {
  uint32_t heads = 1;
  uint32_t kv_heads = 1;        // divides heads; queries of heads/kv_heads heads share keys
  uint32_t head_size = 0;       // of queries and keys, up to 256
  uint32_t value_size = 0;      // of values, up to 256
  float scale = 1;              // onto q k^T; usually head_size^-0.5
  /// Query i of q_len sees key j only when j <= i + (key count - q_len).
  bool causal = false;
  /// q rows per row of keys (beams that share one encoded sentence).
  uint32_t rows_per_kv = 1;
  std::optional<AttentionControl> control;  // none: every row sees all keys
};

/// Source: Vaswani et al. 2017, arXiv:1706.03762; online softmax: Milakov and Gimelshein 2018,
/// arXiv:1805.02867.
/// q: (rows, q_len, ...), k and v: columns of one and the same (rows / rows_per_kv, kv_len, ...) tensor
/// (with ancestry: (rows, capacity, ...)); result: (rows, q_len, heads * value_size), of q's type.
/// A query that may see no key gives zeros. Throws ShapeError naming the layer.
Tensor attention(ProgramBuilder& builder, const HeadColumns& q, const HeadColumns& k,
                 const HeadColumns& v, const AttentionOptions& options);

/// The probabilities attention() uses, before head_mask: (rows, heads, q_len, kv_len) f32, zeros where masked.
Tensor attention_map(ProgramBuilder& builder, const HeadColumns& q, const HeadColumns& k,
                     const AttentionOptions& options);

/// Writes columns of x: (rows, q_len, ...) into cache: (rows, capacity, columns) at position
/// control[position_offset] + i for query i. Nothing is written past the capacity.
struct AppendCacheOptions {
  uint32_t first_column = 0;  // of x
  Tensor control;             // u32
  uint32_t position_offset = 0;
};
void append_cache(ProgramBuilder& builder, const Tensor& x, const Tensor& cache,
                  const AppendCacheOptions& options);

}  // namespace mulciber
