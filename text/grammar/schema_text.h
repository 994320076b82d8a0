// Reads the order of keys from a schema's text.
#pragma once

#include <string>
#include <string_view>

namespace mulciber {

/// The text of a part of a JSON document, found by its path of keys and indices ("a/b/0"); the
/// document must be valid. Throws ModelError where the part does not exist.
std::string json_part(std::string_view document, std::string_view path);

/// Rewrites the objects of `properties` in a valid schema as lists of pairs, [name, schema],
/// because parsed objects do not keep their order.
std::string with_listed_properties(std::string_view schema);

}  // namespace mulciber
