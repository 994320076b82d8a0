// The double-precision definition of rope_append, for its own cases and for attention that begins
// with it.
#pragma once

#include <vector>

#include "conformance/op_case.h"
#include "conformance/ops/page_table.h"

namespace mulciber::conformance {

inline constexpr float kRopeEpsilon = 1e-6f;  // for the norm of heads

struct RopeVariant {
  uint32_t heads = 4, kv_heads = 2, head_size = 64, rotary_size = 64;  // 0: no rotation
  uint64_t rows = 1, length = 1, context = 8;
  uint32_t position = 0;
  std::vector<uint32_t> positions = {};  // one for each row
  bool interleaved = false;
  bool gains = false;
  uint64_t angle_rows = 0;  // 0: equal to the cache's positions
  uint32_t value_size = 0;  // 0: head_size
  bool values = true;       // false: the cache holds keys alone
  uint32_t page = 0;        // positions of a page of the cache; 0: contiguous rows

  PageTable pages() const { return {page, rows, context}; }
  Shape cache_shape() const {
    return page > 0 ? Shape{pages().pool(), page, cache_columns()}
                    : Shape{rows, context, cache_columns()};
  }
  uint64_t value_columns() const {
    if (!values) return 0;
    return uint64_t{kv_heads} * (value_size > 0 ? value_size : head_size);
  }
  /// Columns of the cache.
  uint64_t cache_columns() const { return uint64_t{kv_heads} * head_size + value_columns(); }
};

/// Cosines and sines of the angles of every position for base 10000; they are rounded to f32 when
/// drawn.
CaseInput angle_input(uint64_t positions, uint32_t rotary_size);

/// inputs: queries with keys and values, cache, angles, any fourth input, and gains, if any.
/// Result: the first two after the op.
std::vector<CpuTensor> rope_append_reference(const RopeVariant& v,
                                             std::span<const CpuTensor> inputs);

}  // namespace mulciber::conformance
