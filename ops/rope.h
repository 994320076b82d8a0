// Rotary position embedding of a step's queries and keys, and the write of keys and values into the
// cache.
#pragma once

#include <optional>

#include "ops/attention.h"

namespace mulciber {

struct RopeOptions {
  uint32_t heads = 1, kv_heads = 1;
  uint32_t head_size = 0;   // even
  uint32_t value_size = 0;  // size of a head of values, even; 0: head_size
  bool values = true;       // false: the cache holds keys alone
  /// Even, at most head_size, and a multiple of 4 above 256; later elements are copied.
  uint32_t rotary_size = 0;
  /// Which elements make a pair: false: i and i + rotary_size / 2 (GPT-NeoX, Hugging Face
  /// checkpoints); true: 2 i and 2 i + 1 (the original Llama, llama files of GGUF).
  bool interleaved = false;
  /// (positions, rotary_size) f32: for each position the cosines of all frequencies, then the
  /// sines, with any scaling and magnitude folded in (layers/rope.h). Positions past the table use
  /// its last row.
  Tensor angles;
  /// (2, head_size) f32, queries first: heads of queries and keys go through rms_norm with these
  /// gains before they are rotated (Qwen 3, Gemma 3).
  std::optional<Tensor> gains;
  float epsilon = 0;  // for the norm of `gains`
  Tensor control;     // u32
  /// Position of token 0: one for all rows or one for each; token i is i positions later.
  ControlArray<uint32_t> positions;
  std::optional<ControlArray<uint32_t>> pages;  // AttentionControl::pages; the cache is paged then
};

/// qkv: (rows, length, (heads + kv_heads) * head_size + kv_heads * value_size) f32 or f16: queries,
/// keys, values, head after head. cache: (rows, context, kv_heads * (head_size + value_size)) f32,
/// f16, or q8_0 (qkv in f32, heads of one size, of whole blocks of 32): for each position the keys,
/// then the values, if any. Queries are rotated in place, and the result names their columns, the
/// first of qkv; the other columns of qkv become undefined. Rotated keys and plain values go into
/// the cache at each token's position; nothing is written past the context. One dispatch (two where
/// a device binds only four buffers). Source: Su et al. 2021, arXiv:2104.09864. Throws ShapeError
/// naming the layer.
HeadColumns rope_append(ProgramBuilder& builder, const Tensor& qkv, const Tensor& cache,
                        const RopeOptions& options);

}  // namespace mulciber
