// What the text of a parameter means, where a call of a tool has its arguments as texts.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace mulciber::apps::serve {

/// The value of the property `name` that `schema`, of all arguments, takes: where it may be read in
/// several ways JSON, but a text where only that is allowed, or nothing that it could mean. $ref
/// within the schema, anyOf, oneOf and allOf are followed.
nlohmann::json parameter_value(std::string_view text, const nlohmann::json& schema,
                               const std::string& name);

}  // namespace mulciber::apps::serve
