// The fields of a request's JSON object, each read as the type that it must have.
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
  std::vector<uint32_t> ids;  // replaces the text, where it is not empty
};

/// The functions throw ApiError (400), naming the field, for a value of another type or out of its
/// range. A field that is null counts as absent.
class RequestFields {
 public:
  /// Throws ApiError where the text is not a JSON object. where: stands before the names of fields.
  explicit RequestFields(std::string_view body);
  explicit RequestFields(nlohmann::json object, std::string where);

  /// nullptr where the field is absent.
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
  /// Accepts a field that is absent or has this value, which changes nothing.
  void only(const std::string& name, const nlohmann::json& value, const std::string& why);
  /// Accepts a field for which models without support take one value; for another value OpenAI
  /// answers "unsupported_value".
  void only_usual(const std::string& name, const std::string& value);
  /// A field without an influence on answers.
  void ignore(const std::string& name);

  /// Refuses fields that nothing has read, as OpenAI does; to be called after all others.
  void finish() const;
  std::string path(const std::string& name) const;

 private:
  nlohmann::json object_;
  std::string where_;
  std::set<std::string> known_;
};

}  // namespace mulciber::apps::serve
