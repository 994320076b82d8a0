#include "text/grammar/schema_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "checkpoints/json.h"
#include "text/grammar/rules.h"

namespace mulciber {
namespace {

/// Scans a text of valid JSON.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  char peek() {
    at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size());
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  /// A string with its quotes.
  std::string_view string() {
    peek();
    const size_t begin = at_++;
    for (; at_ < text_.size() && text_[at_] != '"'; ++at_)
      if (text_[at_] == '\\') ++at_;
    at_ = std::min(at_ + 1, text_.size());
    return text_.substr(begin, at_ - begin);
  }
  std::string_view value() {
    if (peek() == '"') return string();
    const size_t begin = at_;
    size_t open = 0;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      const bool opens = c == '{' || c == '[', closes = c == '}' || c == ']';
      if (open == 0 && (closes || c == ',')) break;
      if (c == '"') {
        string();
        continue;
      }
      ++at_;
      if (opens) ++open;
      if (closes && --open == 0) break;
    }
    return text_.substr(begin, at_ - begin);
  }

 private:
  std::string_view text_;
  size_t at_ = 0;
};

std::string name_of(std::string_view key) { return Json::parse(key).get<std::string>(); }

enum class Kind { kValue, kSchema, kSchemas };  // kSchemas: schemas by name

Kind kind_below(std::string_view keyword) {
  for (const char* name : {"enum", "const", "default", "examples", "example"})
    if (keyword == name) return Kind::kValue;
  for (const char* name : {"properties", "$defs", "definitions"})
    if (keyword == name) return Kind::kSchemas;
  return Kind::kSchema;
}

void list_properties(Scanner& from, Kind kind, bool listed, std::string& to) {
  const char first = from.peek();
  if (listed && first != '{') {
    from.value();
    to += "null";
  } else if (kind == Kind::kValue || (first != '{' && first != '[')) {
    to += from.value();
  } else {
    const bool object = from.take('{');
    if (!object) from.take('[');
    to += object && !listed ? '{' : '[';
    for (bool more = from.peek() != '}' && from.peek() != ']'; more; more = from.take(',')) {
      if (to.back() != '{' && to.back() != '[') to += ',';
      Kind below = Kind::kSchema;
      bool lists = false;
      if (object) {
        const std::string_view key = from.string();
        from.take(':');
        const std::string name = name_of(key);
        if (kind == Kind::kSchema) below = kind_below(name);
        lists = kind == Kind::kSchema && name == "properties";
        to += fmt::format("{}{}{}", listed ? "[" : "", key, listed ? ',' : ':');
      }
      list_properties(from, below, lists, to);
      if (listed) to += ']';
    }
    if (!from.take('}')) from.take(']');
    to += object && !listed ? '}' : ']';
  }
}

}  // namespace

std::string json_part(std::string_view document, std::string_view path) {
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view key = path.substr(begin, end - begin);
    begin = end + 1;
    Scanner scanner(document);
    const bool object = scanner.take('{');
    if (!object && !scanner.take('[')) refuse_grammar("the request", "lacks a schema", "");
    std::string_view found;
    size_t index = 0;
    bool more = scanner.peek() != '}' && scanner.peek() != ']';
    for (; more; more = scanner.take(','), ++index) {
      std::string name = std::to_string(index);
      if (object) {
        name = name_of(scanner.string());
        scanner.take(':');
      }
      const std::string_view value = scanner.value();
      if (name == key) found = value;
    }
    if (found.empty()) refuse_grammar("the request", "lacks a schema", "");
    document = found;
  }
  return std::string(document);
}

std::string with_listed_properties(std::string_view schema) {
  Scanner scanner(schema);
  std::string made;
  list_properties(scanner, Kind::kSchema, false, made);
  return made;
}

}  // namespace mulciber
