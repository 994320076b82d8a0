// Multi-head attention: self-attention, attention to earlier tokens through a cache, and
// cross-attention.
#pragma once

#include <optional>

#include "layers/linear.h"
#include "layers/packing.h"
#include "layers/trace.h"
#include "ops/attention.h"

namespace mulciber {

struct HeadSizes {
  uint32_t heads = 1;
  uint32_t key_size = 0;    // per query and key, d_k
  uint32_t value_size = 0;  // per value, d_v; may differ from d_k

  uint32_t key_columns() const { return heads * key_size; }
  uint32_t value_columns() const { return heads * value_size; }
  /// Columns of keys and values together: a row of a cache or of an encoded memory.
  uint32_t memory_columns() const { return key_columns() + value_columns(); }
};

/// Distances that have vectors of their own. A layer projects them to keys and queries like tokens,
/// and adds their scores: He et al. 2021, arXiv:2006.03654.
struct DistanceTable {
  Tensor vectors;                 // (distances, D), in the type of activations
  ControlArray<uint32_t> row_of;  // DisentangledOptions::row_of
  bool content_to_position = true, position_to_content = true;
};

/// What the queries of a layer may see, and the destination of its result.
struct AttentionView {
  std::optional<AttentionControl> control;  // none: all keys
  uint32_t bias_span = 0;  // AttentionOptions::bias_span of the biases in control; 0: no bias
  /// Position of token 0 in control, for layers that rotate.
  std::optional<ControlArray<uint32_t>> first_position;
  bool causal = false;
  bool at_last_key = false;                // the last query is at the last counted key
  uint32_t rows_per_kv = 1;                // rows of queries that share a row of keys
  std::optional<DistanceTable> distances;  // for self-attention over whole sequences
  std::optional<Packing> packing;          // packing of the sequences that attend to themselves
  std::optional<Tensor> add_to;            // destination of a sum (pre-norm residual stream)
  Trace* trace = nullptr;
};

/// Keys and values of all earlier steps.
struct KeyValueCache {
  Tensor tensor;                    // (rows, context, heads * (d_k + d_v)), outlives the program
  Tensor control;                   // u32
  ControlArray<uint32_t> position;  // first position of this step's keys, for all rows or for each
};

/// Rotates queries and keys of whole sequences by their positions (ops/rope.h), which needs heads
/// with d_k = d_v. Source: Su et al. 2021, arXiv:2104.09864.
struct Rotation {
  Tensor angles;         // angles of layers/rope.h
  uint32_t rotated = 0;  // rotated elements of a head
  bool interleaved = false;
};

/// Self-attention. Source: Vaswani et al. 2017, arXiv:1706.03762, section 3.2.
struct SelfAttention {
  HeadSizes sizes;
  Linear qkv;  // (heads * (2 d_k + d_v), D): queries, keys and values in one product
  Linear out;  // (D, heads * d_v)
  std::optional<Rotation> rotation = {};
  uint32_t window = 0;              // AttentionOptions::window, for whole sequences
  std::optional<float> scale = {};  // factor of q k^T; none: d_k^-0.5

  /// Attends within whole sequences. x, result: (rows, length, D), or (1, packed, D) with
  /// view.packing. Throws
  /// ShapeError naming the layer.
  Tensor operator()(ProgramBuilder& builder, const Tensor& x, const AttentionView& view) const;
  /// Processes the next tokens of each row: appends their keys and values to the cache, which their
  /// queries then see. view.control counts the keys including this step's. x, result: (rows,
  /// length, D).
  Tensor step(ProgramBuilder& builder, const Tensor& x, const KeyValueCache& cache,
              const AttentionView& view) const;
};

struct CrossAttention {
  HeadSizes sizes;
  Linear query;      // (heads * d_k, D)
  Linear key_value;  // (heads * (d_k + d_v), the memory's D): keys and values in one product
  Linear out;        // (D, heads * d_v)
  std::optional<float> scale = {};

  /// Computes keys and values of the memory, once per memory. memory: (rows, length, D); into:
  /// (rows, length, heads * (d_k + d_v)), which may outlive the program.
  void project(ProgramBuilder& builder, const Tensor& memory, const Tensor& into) const;
  Tensor project(ProgramBuilder& builder, const Tensor& memory) const;
  /// x, result: (rows, length, D); memory: the result of project(), (rows / rows_per_kv, ...).
  Tensor operator()(ProgramBuilder& builder, const Tensor& x, const Tensor& memory,
                    const AttentionView& view) const;
};

}  // namespace mulciber
