// Reads a parameter's value where a tool call writes arguments as texts.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace mulciber::apps::serve {

/// The value of the property `name` under `schema`, which describes all arguments. A text that can
/// be read in several ways is read as JSON, but stays a text where only a text is allowed, or where
/// no other reading is. $ref within the schema, anyOf, oneOf and allOf are followed.
nlohmann::json parameter_value(std::string_view text, const nlohmann::json& schema,
                               const std::string& name);

}  // namespace mulciber::apps::serve
