// Bounds of numbers in a schema.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "text/grammar/json_text.h"

namespace mulciber {

/// Whether multipleOf makes a schema's numbers whole.
bool whole_multiples(const nlohmann::json& schema);

/// Reads minimum, maximum, exclusiveMinimum, exclusiveMaximum and multipleOf of a schema. whole:
/// numbers are whole although bounds may not be. path: the schema's, for errors. Throws ModelError
/// for values that are not numbers, bounds that exclude all numbers, or grammars that would be too
/// large.
NumberBounds number_bounds(const nlohmann::json& schema, const std::string& path, bool whole);

}  // namespace mulciber
