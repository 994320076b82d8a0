// What a schema says of numbers.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "text/grammar/json_text.h"

namespace mulciber {

/// Whether numbers of a schema are whole because of its multipleOf.
bool whole_multiples(const nlohmann::json& schema);

/// minimum, maximum, exclusiveMinimum, exclusiveMaximum and multipleOf of a schema; whole: numbers
/// are whole, so that bounds need not be. path: the schema's, for errors. Throws ModelError for
/// what is no number, nothing that a number can be, or more than a grammar may be.
NumberBounds number_bounds(const nlohmann::json& schema, const std::string& path, bool whole);

}  // namespace mulciber
