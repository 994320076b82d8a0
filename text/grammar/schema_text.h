// The text of a schema, in which keys stand in their order.
#pragma once

#include <string>
#include <string_view>

namespace mulciber {

/// The text of a part of a JSON document, by its path of keys and indices ("a/b/0"); the document
/// must be valid. Throws ModelError where it is not there.
std::string json_part(std::string_view document, std::string_view path);

/// A valid schema with the objects of `properties` as lists of pairs, [name, schema], since objects
/// do not keep their order once they are read.
std::string with_listed_properties(std::string_view schema);

}  // namespace mulciber
