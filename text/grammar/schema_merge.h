// Schemas that refer to others, or are made of several.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "checkpoints/json.h"

namespace mulciber {

inline const std::string kSchemaNotation = "JSON schema";

/// A schema with `properties` as lists of pairs (schema_text.h). Throws ModelError for what is no
/// JSON, or beyond the limits of grammars.
Json parse_schema(std::string_view text);

/// The schema of a property in such a list, or nullptr.
const Json* property(const Json& properties, std::string_view name);

/// Keywords that say nothing about what is valid.
bool is_annotation(std::string_view keyword);

/// The pointer of a schema that is a $ref and nothing else.
std::optional<std::string> lone_reference(const Json& schema);
/// What "#/$defs/name" stands for. Throws ModelError.
const Json& referred(const Json& document, const std::string& pointer, const std::string& path);
/// Makes one schema of several. What is read for $ref and allOf counts, so that references to
/// references do not multiply without end.
class SchemaMerger {
 public:
  explicit SchemaMerger(const Json& document) : document_(document) {}
  /// A schema without $ref and allOf: what these say stands among its own keywords. Throws
  /// ModelError where two schemas say what cannot be made one.
  Json flattened(const Json& schema, const std::string& path, int depth = 0);

 private:
  static constexpr size_t kMostRead = size_t{8} << 20;  // bytes

  const Json& document_;
  size_t read_ = 0;
};

}  // namespace mulciber
