// What texts of JSON schema's `format` look like.
#pragma once

#include <map>
#include <string>

namespace mulciber {

/// Regular expressions of whole texts, by the name of the format. All texts of an expression are
/// valid by the format; some that are valid are left out, so that answers stay short.
/// Source: JSON Schema 2020-12, Validation, section 7.3, and the standards that it names.
const std::map<std::string, std::string>& string_formats();

}  // namespace mulciber
