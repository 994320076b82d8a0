#include "text/grammar/schema_merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "checkpoints/json.h"
#include "text/grammar/rules.h"
#include "text/grammar/schema_text.h"

namespace mulciber {
namespace {

constexpr int kMostReferences = 32;  // nested references that are replaced by their schemas

[[noreturn]] void refuse(const std::string& path, std::string problem, std::string remedy = {}) {
  refuse_grammar(kSchemaNotation + " at " + path, std::move(problem), std::move(remedy));
}

Json as_list(const Json& value) { return value.is_array() ? value : Json::array({value}); }

/// The types that both lists allow.
Json common_types(const Json& a, const Json& b) {
  Json both = Json::array();
  const auto has = [](const Json& list, const char* type) {
    return std::ranges::find(list, Json(type)) != list.end();
  };
  const Json first = as_list(a), second = as_list(b);
  for (const Json& type : first) {
    const bool same = std::ranges::find(second, type) != second.end();
    if (same || (type == "integer" && has(second, "number"))) both.push_back(type);
    if (!same && type == "number" && has(second, "integer")) both.push_back("integer");
  }
  return both;
}

/// Whether `schema` has all properties of `other`.
bool has_properties_of(const Json& schema, const Json& other) {
  if (!other.contains("properties")) return true;
  const Json& theirs = other["properties"];
  return schema.contains("properties") && theirs.is_array() &&
         std::ranges::all_of(theirs, [&](const Json& pair) {
           return property(schema["properties"], pair[0].get<std::string>()) != nullptr;
         });
}

/// Adds the keywords of `other` to `schema`.
void merge(Json& schema, const Json& other, const std::string& path) {
  const auto is_closed = [](const Json& s) { return s.contains("additionalProperties"); };
  if ((is_closed(schema) && !has_properties_of(schema, other)) ||
      (is_closed(other) && !has_properties_of(other, schema)))
    refuse(path, "has additionalProperties in a part of allOf that lacks properties of another",
           "write one schema with all properties");
  for (const auto& [name, value] : other.items()) {
    if (is_annotation(name)) continue;
    if (!schema.contains(name)) {
      schema[name] = value;
      continue;
    }
    Json& own = schema[name];
    if (own == value) continue;
    const bool numbers = own.is_number() && value.is_number();
    if (name == "properties" && own.is_array() && value.is_array()) {
      for (const Json& pair : value) {
        const auto known = std::ranges::find(own, pair[0], [](const Json& p) { return p[0]; });
        if (known == own.end())
          own.push_back(pair);
        else if ((*known)[1] != pair[1])
          (*known)[1] = Json{{"allOf", Json::array({(*known)[1], pair[1]})}};
      }
    } else if (name == "required" && own.is_array() && value.is_array()) {
      for (const Json& property : value)
        if (std::ranges::find(own, property) == own.end()) own.push_back(property);
    } else if (name == "type") {
      own = common_types(own, value);
    } else if (numbers && (name.starts_with("min") || name == "exclusiveMinimum")) {
      own = std::max(own, value);
    } else if (numbers && (name.starts_with("max") || name == "exclusiveMaximum")) {
      own = std::min(own, value);
    } else {
      refuse(path, fmt::format("says '{}' twice, by allOf, anyOf or $ref", printable(name)),
             "say it once");
    }
  }
}

}  // namespace

Json parse_schema(std::string_view text) {
  const JsonLimits limits = {
      .bytes = kMostGrammarBytes, .depth = 2 * kMostGrammarNesting, .values = 100'000};
  parse_json(text, kSchemaNotation, limits);
  return Json::parse(with_listed_properties(text));
}

const Json* property(const Json& properties, std::string_view name) {
  if (!properties.is_array()) return nullptr;
  for (const Json& pair : properties)
    if (pair.is_array() && pair.size() == 2 && pair[0] == name) return &pair[1];
  return nullptr;
}

bool is_annotation(std::string_view keyword) {
  constexpr const char* kAnnotations[] = {
      "title",    "description", "default",  "examples",  "example", "$schema",    "$id",
      "$comment", "deprecated",  "readOnly", "writeOnly", "$defs",   "definitions"};
  return std::ranges::any_of(kAnnotations, [&](const char* name) { return keyword == name; });
}

std::optional<std::string> lone_reference(const Json& schema) {
  const auto found = schema.find("$ref");
  if (found == schema.end() || !found->is_string()) return std::nullopt;
  const bool alone = std::ranges::all_of(schema.items(), [](const auto& item) {
    return item.key() == "$ref" || is_annotation(item.key());
  });
  if (!alone) return std::nullopt;
  return found->get<std::string>();
}

const Json& referred(const Json& document, const std::string& pointer, const std::string& path) {
  const auto fail = [&] {
    refuse(path, fmt::format("refers to '{}', which is not in the schema", printable(pointer)),
           "refer to #, or to something in it, such as #/$defs/name");
  };
  if (!pointer.starts_with('#') || (pointer.size() > 1 && pointer[1] != '/')) fail();
  const Json* at = &document;
  for (size_t begin = 2; begin <= pointer.size();) {
    const size_t end = std::min(pointer.find('/', begin), pointer.size());
    std::string key;
    for (size_t i = begin; i < end; ++i) {
      const bool tilde = pointer[i] == '~' && i + 1 < end;
      if (tilde && (pointer[i + 1] == '0' || pointer[i + 1] == '1'))
        key += pointer[++i] == '0' ? '~' : '/';
      else
        key += pointer[i];
    }
    begin = end + 1;
    if (at->is_object() && at->contains(key)) {
      at = &(*at)[key];
      continue;
    }
    if (const Json* named = property(*at, key)) {
      at = named;
      continue;
    }
    size_t index = 0;
    const auto read = std::from_chars(key.data(), key.data() + key.size(), index);
    if (!at->is_array() || read.ec != std::errc() || read.ptr != key.data() + key.size() ||
        index >= at->size())
      fail();
    at = &(*at)[index];
  }
  return *at;
}

Json SchemaMerger::flattened(const Json& schema, const std::string& path, int depth) {
  if (depth > kMostReferences)
    refuse(path, "is made of itself, by allOf or by $ref beside other keywords",
           "let a $ref that is recursive stand alone");
  Json flat = schema;
  if (!flat.is_object()) {
    if (flat == Json(true)) return Json::object();
    refuse(path, "combines something that is no object of keywords");
  }
  // A reference may lead to a value in which properties were not listed.
  if (const auto found = flat.find("properties"); found != flat.end()) {
    const bool listed = found->is_array() && std::ranges::all_of(*found, [](const Json& pair) {
                          return pair.is_array() && pair.size() == 2 && pair[0].is_string();
                        });
    if (!listed) refuse(path, "properties is no object");
  }
  const auto take = [&](const Json& other) {
    if ((read_ += other.dump().size()) > kMostRead)
      refuse(
          path,
          fmt::format("combines schemas of more than {} MiB, by allOf and $ref", kMostRead >> 20),
          "combine fewer");
    merge(flat, flattened(other, path, depth + 1), path);
  };
  if (const auto found = flat.find("$ref"); found != flat.end()) {
    if (!found->is_string()) refuse(path, "$ref is no text");
    const std::string pointer = found->get<std::string>();
    flat.erase("$ref");
    take(referred(document_, pointer, path));
  }
  if (const auto found = flat.find("allOf"); found != flat.end()) {
    if (!found->is_array()) refuse(path, "allOf is no list of schemas");
    const Json all = *found;
    flat.erase("allOf");
    for (const Json& each : all) take(each);
  }
  return flat;
}

}  // namespace mulciber
