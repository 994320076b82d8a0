#include "apps/serve/api/parameter_value.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "apps/serve/api/call_heads.h"
#include "checkpoints/json.h"
#include "mulciber/error.h"

namespace mulciber::apps::serve {
namespace {

/// Types of JSON, as bits.
enum Type : unsigned {
  kText = 1,
  kNumber = 2,
  kBoolean = 4,
  kNull = 8,
  kArray = 16,
  kObject = 32,
  kAny = 63
};
constexpr int kMostNesting = 16;  // depth of references between schemas

unsigned type_named(const Json& name) {
  constexpr std::pair<const char*, Type> kNames[] = {
      {"string", kText}, {"number", kNumber}, {"integer", kNumber}, {"boolean", kBoolean},
      {"null", kNull},   {"array", kArray},   {"object", kObject}};
  for (const auto& [known, type] : kNames)
    if (name == known) return type;
  return 0;
}

unsigned type_of(const Json& value) {
  return type_named(value.is_number() ? "number" : value.type_name());
}

/// The values that a schema allows: their types, and a list where it has one. JSON converts to
/// anything, an optional included, so an optional value is always made in place.
struct Allowed {
  unsigned types = kAny;
  std::optional<Json> values;  // a list
};

class SchemaTypes {
 public:
  explicit SchemaTypes(const Json& root) : root_(root) {}

  Allowed of(const Json& schema, int depth = 0) const {
    Allowed allowed;
    if (!schema.is_object() || depth > kMostNesting) return allowed;
    const auto find = [&](const char* keyword) {
      const auto found = schema.find(keyword);
      return found == schema.end() ? nullptr : &*found;
    };
    if (const Json* type = find("type")) {
      allowed.types = 0;
      for (const Json& name : type->is_array() ? *type : Json::array({*type}))
        allowed.types |= type_named(name);
    }
    if (const Json* only = find("const")) both(allowed, listed(Json::array({*only})));
    if (const Json* values = find("enum"); values && values->is_array())
      both(allowed, listed(*values));
    if (const Json* to = find("$ref"); to && to->is_string()) both(allowed, referred(*to, depth));
    for (const char* keyword : {"anyOf", "oneOf"}) {
      const Json* ways = find(keyword);
      if (!ways || !ways->is_array() || ways->empty()) continue;
      Allowed any{0, std::optional<Json>(std::in_place, Json::array())};
      for (const Json& way : *ways) either(any, of(way, depth + 1));
      both(allowed, any);
    }
    if (const Json* all = find("allOf"); all && all->is_array())
      for (const Json& each : *all) both(allowed, of(each, depth + 1));
    return allowed;
  }

 private:
  static Allowed listed(const Json& values) {
    Allowed allowed{0, std::optional<Json>(std::in_place, values)};
    for (const Json& value : values) allowed.types |= type_of(value);
    return allowed;
  }
  Allowed referred(const std::string& to, int depth) const {
    if (!to.starts_with('#')) return {};
    try {
      return of(root_.at(Json::json_pointer(to.substr(1))), depth + 1);
    } catch (const Json::exception&) {
      return {};  // the pointer is malformed, or leads nowhere
    }
  }
  static void both(Allowed& allowed, const Allowed& other) {
    allowed.types &= other.types;
    if (!allowed.values) allowed.values = other.values;
  }
  static void either(Allowed& any, const Allowed& way) {
    any.types |= way.types;
    if (any.values && way.values)
      any.values->insert(any.values->end(), way.values->begin(), way.values->end());
    else
      any.values.reset();
  }

  const Json& root_;
};

Allowed allowed_of(const Json& schema, const std::string& name) {
  if (!schema.is_object()) return {};
  const auto properties = schema.find("properties");
  if (properties == schema.end() || !properties->is_object()) return {};
  const auto property = properties->find(name);
  return property == properties->end() ? Allowed{} : SchemaTypes(schema).of(*property);
}

/// The text as JSON, or as one of Python's words.
std::optional<Json> parsed(std::string_view text) {
  constexpr std::pair<std::string_view, const char*> kWords[] = {
      {"True", "true"}, {"False", "false"}, {"None", "null"}};
  for (const auto& [word, meant] : kWords)
    if (trimmed(text) == word) text = meant;
  try {
    return std::optional<Json>(std::in_place, parse_json(std::string(text), "a parameter"));
  } catch (const ModelError&) {
    return std::nullopt;
  }
}

}  // namespace

Json parameter_value(std::string_view text, const Json& schema, const std::string& name) {
  // The line breaks belong to the lines of the tags.
  if (text.starts_with("\n")) text.remove_prefix(1);
  if (text.ends_with("\n")) text.remove_suffix(1);
  const Allowed allowed = allowed_of(schema, name);
  const std::optional<Json> value = parsed(text);
  const auto is_listed = [&](const Json& one) {
    return allowed.values && std::ranges::find(*allowed.values, one) != allowed.values->end();
  };
  if (!value || is_listed(text)) return text;
  if (is_listed(*value) || (allowed.types & kText) == 0 || allowed.types == kAny) return *value;
  // Quotes are a part of a text, so that a quoted value stays as it is.
  return !value->is_string() && (allowed.types & type_of(*value)) != 0 ? *value : Json(text);
}

}  // namespace mulciber::apps::serve
