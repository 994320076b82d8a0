// Multi-head attention: of a sequence to itself, to its own past through a cache, to another
// sequence.
#pragma once

#include <optional>

#include "layers/linear.h"
#include "layers/packing.h"
#include "layers/trace.h"
#include "ops/attention.h"

namespace mulciber {

struct HeadSizes {
  uint32_t heads = 1;
  uint32_t key_size = 0;    // of a query and a key, d_k
  uint32_t value_size = 0;  // of a value, d_v; may differ from d_k

  uint32_t key_columns() const { return heads * key_size; }
  uint32_t value_columns() const { return heads * value_size; }
  /// Columns of keys and values side by side: a row of a cache or of an encoded memory.
  uint32_t memory_columns() const { return key_columns() + value_columns(); }
};

/// Distances as vectors of their own, whose keys and queries a layer projects as those of tokens,
/// and adds their scores: He et al. 2021, arXiv:2006.03654.
struct DistanceTable {
  Tensor vectors;                 // (distances, D), of the type of activations
  ControlArray<uint32_t> row_of;  // DisentangledOptions::row_of
  bool content_to_position = true, position_to_content = true;
};

/// What the queries of a layer may see, and what happens to its result.
struct AttentionView {
  std::optional<AttentionControl> control;  // none: all keys
  uint32_t bias_span = 0;  // AttentionOptions::bias_span of the biases in control; 0: none
  /// Position of token 0 in control, for layers that rotate.
  std::optional<ControlArray<uint32_t>> first_position;
  bool causal = false;
  bool at_last_key = false;                // the last query stands at the last key that is counted
  uint32_t rows_per_kv = 1;                // rows of queries that share a row of keys
  std::optional<DistanceTable> distances;  // of self-attention over whole sequences
  std::optional<Packing> packing;          // of the sequences that attend to themselves
  std::optional<Tensor> add_to;            // the result is added here (pre-norm residual stream)
  Trace* trace = nullptr;
};

/// Keys and values of all earlier steps.
struct KeyValueCache {
  Tensor tensor;                    // (rows, context, heads * (d_k + d_v)), outlives the program
  Tensor control;                   // u32
  ControlArray<uint32_t> position;  // where this step's keys go, of all rows or of each
};

/// Queries and keys of whole sequences are rotated by their positions (ops/rope.h), which needs
/// heads with d_k = d_v. Source: Su et al. 2021, arXiv:2104.09864.
struct Rotation {
  Tensor angles;         // as layers/rope.h makes them
  uint32_t rotated = 0;  // elements of a head
  bool interleaved = false;
};

/// Source: Vaswani et al. 2017, arXiv:1706.03762, section 3.2.
struct SelfAttention {
  HeadSizes sizes;
  Linear qkv;  // (heads * (2 d_k + d_v), D): queries, keys and values in one product
  Linear out;  // (D, heads * d_v)
  std::optional<Rotation> rotation = {};
  uint32_t window = 0;              // in whole sequences: as AttentionOptions::window
  std::optional<float> scale = {};  // onto q k^T; none: d_k^-0.5

  /// Whole sequences. x, result: (rows, length, D), or (1, packed, D) with view.packing. Throws
  /// ShapeError naming the layer.
  Tensor operator()(ProgramBuilder& builder, const Tensor& x, const AttentionView& view) const;
  /// The next tokens of each row: their keys and values are appended to the cache, their queries
  /// see the cache. view.control counts the keys, this step's included. x, result: (rows, length,
  /// D).
  Tensor step(ProgramBuilder& builder, const Tensor& x, const KeyValueCache& cache,
              const AttentionView& view) const;
};

struct CrossAttention {
  HeadSizes sizes;
  Linear query;      // (heads * d_k, D)
  Linear key_value;  // (heads * (d_k + d_v), D of the memory): keys and values in one product
  Linear out;        // (D, heads * d_v)
  std::optional<float> scale = {};

  /// Keys and values of the memory, once per memory. memory: (rows, length, D);
  /// into: (rows, length, heads * (d_k + d_v)), which may outlive the program.
  void project(ProgramBuilder& builder, const Tensor& memory, const Tensor& into) const;
  Tensor project(ProgramBuilder& builder, const Tensor& memory) const;
  /// x, result: (rows, length, D); memory: what project() gave, (rows / rows_per_kv, ...).
  Tensor operator()(ProgramBuilder& builder, const Tensor& x, const Tensor& memory,
                    const AttentionView& view) const;
};

}  // namespace mulciber
