// Recorded results of recurrent networks as cases: the entries of recurrent.json
// (docs/reference/conformance-vectors.md).
#pragma once

#include <string>

#include "conformance/vectors/recorded.h"

namespace mulciber::conformance {

/// What recurrent layers lack to serve an entry without a `score`, or "".
std::string missing_of_recurrent(const Json& entry);

/// The case of an entry: a cell, layers in both directions, or an encoder and a decoder with
/// attention. weights: storage of matrices and embedding tables; all else is f32. Results may be
/// off by kShare32 of their tensor's largest value, with f16 weights by kShare16. Throws
/// ModelError, Json::exception.
OpCase recurrent_vector(const Json& entry, const SafetensorsFile& file, DataType weights);

}  // namespace mulciber::conformance
