// The double-precision definition of attention.
#pragma once

#include "conformance/bounds.h"
#include "conformance/op_case.h"
#include "ops/attention.h"

namespace mulciber::conformance {

/// First columns of queries in q, and of keys and values in kv.
struct AttentionColumns {
  uint32_t q = 0, k = 0, v = 0;
};

struct AttentionReference {
  CpuTensor result;  // (rows, q_len, heads * value_size), of q's type
  CpuTensor map;     // (rows, heads, q_len, kv_len), f32
};

/// q: (rows, q_len, ...), kv: (rows / rows_per_kv, kv_len, ...), control: the words for the arrays
/// of options.control (options.control's tensor is not read). The bounds of q, kv, and of centers
/// among the words are the errors of these inputs. Matrix units use f16: the bounds include the
/// rounding of q and kv, and of weights before the second product.
AttentionReference attention_reference(const CpuTensor& q, const CpuTensor& kv,
                                       const CpuTensor& control, const AttentionColumns& columns,
                                       const AttentionOptions& options,
                                       const Arithmetic& arithmetic = {});

/// The term that a column of a query and of a key, with their errors, adds to a score. `v`: the
/// score vector's element, for scores that have one.
Bounded score_term(const AttentionOptions& options, Bounded q, Bounded k, double v);

}  // namespace mulciber::conformance
