// What a call of the public attention asks of layers/attention_family.h: options, and the words
// that kernels read beside queries and keys.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "mulciber/attention.h"
#include "ops/attention.h"

namespace mulciber {

struct AttentionPlan {
  uint64_t q_batch, kv_batch, q_len, kv_len;
  uint64_t score_columns;    // keys that are scored: compressed ones where there is a compression
  AttentionOptions options;  // the tensor of its control is not set; no control: no words
  ControlWords words;

  uint64_t batch() const { return q_batch > kv_batch ? q_batch : kv_batch; }
};

/// kv_heads of the description is set. Throws ShapeError where arrays and description do not fit
/// together.
AttentionPlan plan_attention(const AttentionDescription& description,
                             const AttentionInputs& inputs);

/// Throws ShapeError naming `what` unless the array has so many extents, and a value for each
/// element.
void check_array(const std::string& what, const FloatArray& array, size_t rank);

}  // namespace mulciber
