// Cases from recorded results of attention: the entries of attention.json
// (docs/reference/conformance-vectors.md).
#pragma once

#include <string>

#include "conformance/vectors/recorded.h"

namespace mulciber::conformance {

/// The feature that attention lacks for an entry, "no score `x`", or "".
std::string missing_of_attention(const Json& entry);

/// The case of an entry, with f32 or f16 storage. f32: the bounds of the reference over equal
/// inputs, at most kShare32 of the largest recorded value. f16: kShare16 of it, and more where
/// storage alone costs more: 5e-4 plus the error of the reference with inputs, weights and
/// projections rounded to f16. Throws ModelError, Json::exception.
OpCase attention_vector(const Json& entry, const SafetensorsFile& file, DataType type);

}  // namespace mulciber::conformance
