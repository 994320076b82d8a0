// Converts JSON schemas (a part of draft 2020-12) to grammars of the valid texts.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "checkpoints/json.h"
#include "text/grammar/json_text.h"
#include "text/grammar/number_bounds.h"
#include "text/grammar/schema_merge.h"
#include "text/grammar/string_formats.h"

namespace mulciber {
namespace {

const std::string kNotation = kSchemaNotation;

[[noreturn]] void refuse(const std::string& path, std::string problem, std::string remedy = {}) {
  refuse_grammar(kNotation + " at " + path, std::move(problem), std::move(remedy));
}

/// A keyword and the type of the values that it restricts.
struct Keyword {
  const char* name;
  const char* type;
};
constexpr Keyword kKeywords[] = {{"type", ""},
                                 {"enum", ""},
                                 {"const", ""},
                                 {"properties", "object"},
                                 {"required", "object"},
                                 {"additionalProperties", "object"},
                                 {"items", "array"},
                                 {"prefixItems", "array"},
                                 {"minItems", "array"},
                                 {"maxItems", "array"},
                                 {"minLength", "string"},
                                 {"maxLength", "string"},
                                 {"pattern", "string"},
                                 {"format", "string"},
                                 {"multipleOf", "number"},
                                 {"minimum", "number"},
                                 {"maximum", "number"},
                                 {"exclusiveMinimum", "number"},
                                 {"exclusiveMaximum", "number"}};
constexpr const char* kTypes[] = {"object",  "array",   "string", "number",
                                  "integer", "boolean", "null"};

class SchemaReader {
 public:
  explicit SchemaReader(const Json& document)
      : document_(document), merger_(document), rules_(kNotation), text_(rules_) {}

  Rules run() {
    rules_.root = rules_.add_rule("the schema");
    references_["#"] = rules_.root;
    rules_.define(rules_.root, schema(document_, "#"));
    return std::move(rules_);
  }

 private:
  Part schema(const Json& given, const std::string& path) {
    if (++depth_ > kMostGrammarNesting)
      refuse(path, fmt::format("has more than {} schemas in one another", kMostGrammarNesting));
    const Part part = described(given, path);
    --depth_;
    return part;
  }

  Part described(const Json& given, const std::string& path) {
    if (given.is_boolean()) return given.get<bool>() ? text_.value() : rules_.choice({});
    if (!given.is_object()) refuse(path, "is no schema: it must be an object, true or false");
    // A reference alone becomes a call, which may be recursive.
    if (const auto target = lone_reference(given)) return reference(*target, path);
    const Json flat = merger_.flattened(given, path);
    for (const char* name : {"anyOf", "oneOf"}) {
      const auto found = flat.find(name);
      if (found != flat.end()) return any_of(flat, name, path);
    }
    for (const auto& item : flat.items()) {
      const std::string& name = item.key();
      if (is_annotation(name)) continue;
      if (std::ranges::none_of(kKeywords, [&](const Keyword& k) { return name == k.name; }))
        refuse(path, fmt::format("uses the keyword '{}', which is not supported", printable(name)),
               "leave it out, or check the answer for it");
    }
    if (flat.contains("enum") || flat.contains("const")) return listed(flat, path);
    const std::set<std::string> types = types_of(flat, path);
    if (types.empty()) return text_.value();
    std::vector<Part> parts;
    for (const std::string& type : types) parts.push_back(of_type(type, flat, path));
    return rules_.choice(std::move(parts));
  }

  Part reference(const std::string& pointer, const std::string& path) {
    const auto known = references_.find(pointer);
    if (known != references_.end()) return rules_.call(known->second);
    const Json& target = referred(document_, pointer, path);
    const uint32_t rule = rules_.add_rule(pointer);
    references_[pointer] = rule;
    rules_.define(rule, schema(target, pointer));
    return rules_.call(rule);
  }

  Part any_of(const Json& flat, const std::string& name, const std::string& path) {
    const Json& list = flat[name];
    if (!list.is_array() || list.empty()) refuse(path, name + " is no list of schemas");
    Json rest = flat;
    rest.erase(name);
    const bool alone = std::ranges::all_of(
        rest.items(), [](const auto& item) { return is_annotation(item.key()); });
    std::vector<Part> parts;
    for (size_t i = 0; i < list.size(); ++i) {
      const std::string inner = fmt::format("{}/{}/{}", path, name, i);
      if (alone) {
        parts.push_back(schema(list[i], inner));
      } else {
        parts.push_back(schema(Json{{"allOf", Json::array({rest, list[i]})}}, inner));
      }
    }
    return rules_.choice(std::move(parts));
  }

  Part listed(const Json& flat, const std::string& path) {
    Json values = Json::array();
    const bool both = flat.contains("enum") && flat.contains("const");
    if (flat.contains("enum")) values = flat["enum"];
    if (!values.is_array()) refuse(path, "enum is no list");
    if (flat.contains("const")) {
      const bool is_in = std::ranges::find(values, flat["const"]) != values.end();
      values = both && !is_in ? Json::array() : Json::array({flat["const"]});
    }
    for (const auto& [name, value] : flat.items()) {
      if (!is_annotation(name) && name != "type" && name != "enum" && name != "const")
        refuse(path, fmt::format("has enum or const together with '{}'", name), "leave one out");
    }
    const std::set<std::string> types = types_of(flat, path);
    std::vector<Part> parts;
    for (const Json& value : values) {
      const bool fits = types.empty() || types.count(json_type(value)) > 0 ||
                        (types.count("number") > 0 && value.is_number());
      if (fits) parts.push_back(rules_.text(value.dump()));
    }
    return rules_.choice(std::move(parts));
  }
  static std::string json_type(const Json& value) {
    if (value.is_number_integer()) return "integer";
    return value.is_number() ? "number" : value.type_name();
  }

  std::set<std::string> types_of(const Json& flat, const std::string& path) const {
    std::set<std::string> types;
    if (const auto found = flat.find("type"); found != flat.end()) {
      for (const Json& name : found->is_array() ? *found : Json::array({*found})) {
        if (!name.is_string() ||
            std::ranges::count(kTypes, name.get_ref<const std::string&>()) == 0)
          refuse(path, fmt::format("has an unknown type {}", printable(name.dump())));
        types.insert(name.get<std::string>());
      }
      if (types.empty()) refuse(path, "allows no type");
    } else if (!flat.contains("enum") && !flat.contains("const")) {
      // Without a type, the keywords determine it.
      for (const Keyword& keyword : kKeywords)
        if (*keyword.type && flat.contains(keyword.name)) types.insert(keyword.type);
    }
    if (types.count("number") > 0) types.erase("integer");
    return types;
  }

  Part of_type(const std::string& type, const Json& flat, const std::string& path) {
    if (type == "object") return rules_.shared(path, object(flat, path));
    if (type == "array") return rules_.shared(path, array(flat, path));
    if (type == "string") return string(flat, path);
    if (type == "number" || type == "integer") {
      // Multiples of a whole number are whole numbers.
      const bool whole = type == "integer" || whole_multiples(flat);
      const NumberBounds bounds = number_bounds(flat, path, whole);
      return whole ? text_.integer(bounds) : text_.number(bounds);
    }
    if (type == "boolean") return text_.boolean();
    return rules_.text("null");
  }

  uint32_t count(const Json& flat, const char* name, uint32_t otherwise,
                 const std::string& path) const {
    const auto found = flat.find(name);
    if (found == flat.end()) return otherwise;
    if (!found->is_number() || found->get<double>() < 0 ||
        found->get<double>() != std::floor(found->get<double>()))
      refuse(path, fmt::format("{} is no whole number", name));
    return static_cast<uint32_t>(std::min(found->get<double>(), double{kUnbounded - 1}));
  }
  std::pair<uint32_t, uint32_t> counts(const Json& flat, const char* least, const char* most,
                                       const std::string& path) const {
    const std::pair<uint32_t, uint32_t> made = {count(flat, least, 0, path),
                                                count(flat, most, kUnbounded, path)};
    if (made.first > made.second) refuse(path, fmt::format("{} is above {}", least, most));
    return made;
  }

  Part string(const Json& flat, const std::string& path) {
    if (flat.contains("pattern") && flat.contains("format"))
      refuse(path, "has both a pattern and a format", "let the pattern say it all");
    const auto [least, most] = counts(flat, "minLength", "maxLength", path);
    const auto text = [&](const char* name) {
      if (!flat[name].is_string()) refuse(path, fmt::format("{} is no text", name));
      return flat[name].get<std::string>();
    };
    if (flat.contains("pattern")) return text_.pattern(text("pattern"), true, least, most);
    if (!flat.contains("format")) return rules_.shared(path, text_.string(least, most));
    const auto format = string_formats().find(text("format"));
    if (format != string_formats().end()) return text_.pattern(format->second, false, least, most);
    std::string known;
    for (const auto& [name, pattern] : string_formats()) known += name + ", ";
    refuse(path,
           fmt::format("has the format '{}', which is not supported", printable(text("format"))),
           "take one of " + known + "or a pattern");
  }

  Part array(const Json& flat, const std::string& path) {
    const auto [least, most] = counts(flat, "minItems", "maxItems", path);
    std::vector<Part> first;
    if (flat.contains("prefixItems")) {
      if (!flat["prefixItems"].is_array()) refuse(path, "prefixItems is no list");
      for (size_t i = 0; i < flat["prefixItems"].size(); ++i)
        first.push_back(schema(flat["prefixItems"][i], fmt::format("{}/prefixItems/{}", path, i)));
    }
    // Without `items`, the array has only the first items, unless minItems asks for more.
    const bool more = flat.contains("items") || first.empty() || least > first.size();
    const Part item = !more                    ? rules_.choice({})
                      : flat.contains("items") ? schema(flat["items"], path + "/items")
                                               : text_.value();
    const Part next = rules_.sequence({text_.comma(), item});
    const auto left = [&](uint32_t bound, size_t taken) {
      return bound == kUnbounded ? bound
                                 : bound - std::min<uint32_t>(bound, static_cast<uint32_t>(taken));
    };
    if (most == 0) return rules_.text("[]");
    const size_t before = std::max<size_t>(first.size(), 1);
    Part tail = rules_.repeat(next, left(least, before), left(most, before));
    for (size_t i = first.size(); i-- > 1;) {
      // The rest of the array after item i - 1.
      const Part go_on = rules_.sequence({text_.comma(), first[i], tail});
      std::vector<Part> ways;
      if (i >= least) ways.push_back(rules_.text(""));
      if (i < most) ways.push_back(go_on);
      tail = rules_.shared(path, rules_.choice(std::move(ways)));
    }
    const Part items = rules_.sequence({first.empty() ? item : first[0], tail});
    const Part filled = text_.braces('[', items, ']');
    if (least > 0) return filled;
    return rules_.choice({rules_.text("[]"), filled});
  }

  Part object(const Json& flat, const std::string& path) {
    std::set<std::string> required;
    if (flat.contains("required")) {
      if (!flat["required"].is_array()) refuse(path, "required is no list of names");
      for (const Json& name : flat["required"]) {
        if (!name.is_string()) refuse(path, "required is no list of names");
        required.insert(name.get<std::string>());
      }
    }
    struct Property {
      Part member;
      bool required;
    };
    std::vector<Property> properties;
    std::set<std::string> names;
    const auto add = [&](const std::string& name, Part value) {
      names.insert(name);
      properties.push_back(
          {text_.member(rules_.text(Json(name).dump()), value), required.count(name) > 0});
    };
    if (flat.contains("properties")) {
      for (const Json& pair : flat["properties"]) {
        const std::string name = pair[0];
        add(name, schema(pair[1], path + "/properties/" + printable(name)));
      }
    }
    const bool has_more = flat.contains("additionalProperties");
    const Json more = has_more ? flat["additionalProperties"] : Json(names.empty());
    const auto additional = [&] { return schema(more, path + "/additionalProperties"); };
    for (const std::string& name : required)
      if (names.count(name) == 0) add(name, has_more ? additional() : text_.value());
    if (properties.empty() && more == Json(true)) return text_.object();
    // The possible continuations from property i on: after a member, and at the start of the
    // object.
    Part behind = rules_.text(""), first = rules_.text("}");
    const Part end = rules_.sequence({text_.gap(), rules_.text("}")});
    behind = end;
    if (more != Json(false)) {
      const Part member = text_.member(other_key(names), additional());
      const Part rest = rules_.repeat(rules_.sequence({text_.comma(), member}), 0, kUnbounded);
      behind = rules_.shared(path, rules_.sequence({rest, end}));
      first = rules_.choice({first, rules_.sequence({text_.gap(), member, behind})});
    }
    for (size_t i = properties.size(); i-- > 0;) {
      const Property& property = properties[i];
      const Part then = behind;
      std::vector<Part> next = {rules_.sequence({text_.comma(), property.member, then})};
      std::vector<Part> begin = {rules_.sequence({text_.gap(), property.member, then})};
      if (!property.required) {
        next.push_back(behind);
        begin.push_back(first);
      }
      behind = rules_.shared(path, rules_.choice(std::move(next)));
      first = rules_.shared(path, rules_.choice(std::move(begin)));
    }
    return rules_.sequence({rules_.text("{"), first});
  }

  /// A key that is not in `names`, without escapes.
  Part other_key(const std::set<std::string>& names) {
    const CodeSet plain = complement({{0, 0x1f}, {'"', '"'}, {'\\', '\\'}});
    const Part any = rules_.repeat(rules_.one_of(plain), 0, kUnbounded);
    return rules_.sequence({rules_.text("\""),
                            other_than({names.begin(), names.end()}, plain, any, 0),
                            rules_.text("\"")});
  }
  /// Continuations, from byte `at` on, that differ from all names; the names agree in the bytes
  /// before.
  Part other_than(const std::vector<std::string>& names, const CodeSet& plain, Part any,
                  size_t at) {
    std::map<uint32_t, std::vector<std::string>> by_next;
    bool is_name = false;
    CodeSet taken;
    for (const std::string& name : names) {
      if (at >= name.size()) {
        is_name = true;
        continue;
      }
      // Names with characters beyond ASCII are distinguished by the first of these.
      const auto c = static_cast<unsigned char>(name[at]);
      if (c < 0x80) by_next[c].push_back(name);
      taken.push_back(c < 0x80 ? CodeRange{c, c} : CodeRange{0x80, 0x10ffff});
    }
    std::vector<Part> parts = {rules_.sequence({rules_.one_of(without(plain, taken)), any})};
    if (!is_name) parts.push_back(rules_.text(""));
    for (const auto& [c, list] : by_next) {
      const CodeSet one = without({{c, c}}, complement(plain));
      if (one.empty()) continue;
      parts.push_back(rules_.sequence({rules_.one_of(one), other_than(list, plain, any, at + 1)}));
    }
    return rules_.shared("a key", rules_.choice(std::move(parts)));
  }

  const Json& document_;
  SchemaMerger merger_;
  Rules rules_;
  JsonText text_;
  std::map<std::string, uint32_t> references_;  // rules by JSON pointer
  size_t depth_ = 0;
};

}  // namespace

Rules read_json_schema(std::string_view schema) { return SchemaReader(parse_schema(schema)).run(); }

}  // namespace mulciber
