// Options of layers/attention_family.h for a call of the public attention, and the control words
// that kernels read.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "mulciber/attention.h"
#include "ops/attention.h"

namespace mulciber {

struct AttentionPlan {
  uint64_t q_batch, kv_batch, q_len, kv_len;
  uint64_t score_columns;    // number of keys after compression
  AttentionOptions options;  // control's tensor is not set; no control: no words
  ControlWords words;

  uint64_t batch() const { return q_batch > kv_batch ? q_batch : kv_batch; }
};

/// Plans a call. kv_heads of the description must be set. Throws ShapeError when arrays and
/// description disagree.
AttentionPlan plan_attention(const AttentionDescription& description,
                             const AttentionInputs& inputs);

/// Throws ShapeError naming `what` unless the array has `rank` dimensions and a value for each
/// element.
void check_array(const std::string& what, const FloatArray& array, size_t rank);

}  // namespace mulciber
