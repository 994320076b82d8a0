// Cases from recorded results of recurrent networks: the entries of recurrent.json
// (docs/reference/conformance-vectors.md).
#pragma once

#include <string>

#include "conformance/vectors/recorded.h"

namespace mulciber::conformance {

/// The feature that recurrent layers lack for an entry without a `score`, or "".
std::string missing_of_recurrent(const Json& entry);

/// The case of an entry: a cell, bidirectional layers, or an encoder and a decoder with attention.
/// weights: storage of matrices and embedding tables; all other tensors are f32. The allowed error
/// is kShare32 of a tensor's largest value, with f16 weights kShare16. Throws ModelError,
/// Json::exception.
OpCase recurrent_vector(const Json& entry, const SafetensorsFile& file, DataType weights);

}  // namespace mulciber::conformance
