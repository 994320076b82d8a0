// Resolves schemas that refer to others or combine several.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "checkpoints/json.h"

namespace mulciber {

inline const std::string kSchemaNotation = "JSON schema";

/// Parses a schema; `properties` become lists of pairs (schema_text.h). Throws ModelError for text
/// that is not JSON, or beyond the limits of grammars.
Json parse_schema(std::string_view text);

/// The schema of a property in such a list, or nullptr.
const Json* property(const Json& properties, std::string_view name);

/// Whether a keyword only annotates and does not restrict values.
bool is_annotation(std::string_view keyword);

/// The pointer of a schema that consists of a $ref alone.
std::optional<std::string> lone_reference(const Json& schema);
/// The schema that "#/$defs/name" refers to. Throws ModelError.
const Json& referred(const Json& document, const std::string& pointer, const std::string& path);
/// Merges schemas into one. The text read for $ref and allOf is counted and bounded, so that
/// references to references cannot grow without end.
class SchemaMerger {
 public:
  explicit SchemaMerger(const Json& document) : document_(document) {}
  /// A schema without $ref and allOf, whose content is merged into its own keywords. Throws
  /// ModelError where two schemas cannot be merged.
  Json flattened(const Json& schema, const std::string& path, int depth = 0);

 private:
  static constexpr size_t kMostRead = size_t{8} << 20;  // bytes

  const Json& document_;
  size_t read_ = 0;
};

}  // namespace mulciber
