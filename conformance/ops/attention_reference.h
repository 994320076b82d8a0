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
  HostTensor result;  // (rows, q_len, heads * value_size), of q's type
  HostTensor map;     // (rows, heads, q_len, kv_len), f32
};

/// q: (rows, q_len, ...), kv: (rows / rows_per_kv, kv_len, ...), control: the words that
/// options.control's arrays stand in (options.control's tensor is not read); bounds of q, kv,
/// and of centers among the words are how far these may be off already. Matrix units take f16: what
/// q and kv lose on the way to them, and weights on the way to the second product, is part of the
/// bounds.
AttentionReference attention_reference(const HostTensor& q, const HostTensor& kv,
                                       const HostTensor& control, const AttentionColumns& columns,
                                       const AttentionOptions& options,
                                       const Arithmetic& arithmetic = {});

/// What a column of a query and of a key, with their errors, add to a score. `v`: of the vector of
/// the scores that have one.
Bounded score_term(const AttentionOptions& options, Bounded q, Bounded k, double v);

}  // namespace mulciber::conformance
