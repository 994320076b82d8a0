// The fields of a request's JSON object, each read as what it has to be.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "apps/serve/http/api_error.h"

namespace mulciber::apps::serve {

/// A text, or the ids of its tokens.
struct TextOrIds {
  std::string text;
  std::vector<uint32_t> ids;  // in place of the text, where there are some
};

/// The functions throw ApiError (400), naming the field, for a value of another type or out of its
/// range. A field that is null counts as absent.
class RequestFields {
 public:
  /// Throws ApiError where the text is not a JSON object; `where` stands before its fields' names.
  explicit RequestFields(std::string_view body);
  explicit RequestFields(nlohmann::json object, std::string where);

  /// nullptr where it is absent.
  const nlohmann::json* find(const std::string& name);
  const nlohmann::json& needed(const std::string& name);
  std::optional<std::string> text(const std::string& name);
  std::string needed_text(const std::string& name);
  std::optional<bool> flag(const std::string& name);
  std::optional<double> number(const std::string& name, double low, double high);
  std::optional<uint64_t> whole(const std::string& name, uint64_t low, uint64_t high);
  /// A text, or a list of texts.
  std::vector<std::string> texts(const std::string& name, size_t most);
  /// A text, a list of texts, a list of ids, or a list of such lists.
  std::vector<TextOrIds> texts_or_ids(const std::string& name, size_t most);
  /// A field that may be absent or have this value, which changes nothing.
  void only(const std::string& name, const nlohmann::json& value, const std::string& why);
  /// A field of which models without it take one value, which OpenAI refuses as "unsupported_value"
  /// where it is another.
  void only_usual(const std::string& name, const std::string& value);
  /// A field without an influence on answers.
  void ignore(const std::string& name);

  /// After all others: refuses a field that nobody asked for, as OpenAI does.
  void finish() const;
  std::string path(const std::string& name) const;

 private:
  nlohmann::json object_;
  std::string where_;
  std::set<std::string> known_;
};

}  // namespace mulciber::apps::serve
