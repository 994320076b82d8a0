// Texts for the `format` keyword of JSON schemas.
#pragma once

#include <map>
#include <string>

namespace mulciber {

/// Regular expressions of whole texts, by the name of the format. All texts that an expression
/// matches are valid for the format; some valid ones are excluded, so that answers stay short.
/// Source: JSON Schema 2020-12, Validation, section 7.3, and the standards that it names.
const std::map<std::string, std::string>& string_formats();

}  // namespace mulciber
