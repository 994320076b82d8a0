#include "checkpoints/config_reader.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "mulciber/error.h"

namespace mulciber {
namespace {

std::string text_of(const Json& value) {
  return value.is_structured() ? value.type_name() : printable(value.dump());
}

std::optional<std::int64_t> integer_value(const Json& value) {
  if (value.is_number_unsigned()) {
    const auto number = value.get<std::uint64_t>();
    return number <= INT64_MAX ? std::optional<std::int64_t>(number) : std::nullopt;
  }
  if (value.is_number_integer()) return value.get<std::int64_t>();
  return std::nullopt;
}

}  // namespace

ConfigReader::ConfigReader(const Json& object, std::string where, std::string remedy)
    : object_(object), where_(std::move(where)), remedy_(std::move(remedy)) {
  if (!object.is_object()) throw ModelError(where_, "is not a JSON object", "download it again");
}

void ConfigReader::fail(const std::string& key, const std::string& problem) const {
  throw ModelError(where_, "'" + key + "' " + problem, remedy_);
}

const Json* ConfigReader::find(const char* key) const {
  const auto it = object_.find(key);
  return it == object_.end() || it->is_null() ? nullptr : &*it;
}

ConfigReader ConfigReader::object(const char* key) const {
  const Json& found = value(key);
  if (!found.is_object()) fail(key, "is " + text_of(found) + "; an object is expected");
  return {found, where_, remedy_};
}

const Json& ConfigReader::list(const char* key) const {
  const Json& found = value(key);
  if (!found.is_array()) fail(key, "is " + text_of(found) + "; a list is expected");
  return found;
}

bool ConfigReader::has(const char* key) const { return find(key) != nullptr; }

const Json& ConfigReader::value(const char* key) const {
  const Json* found = find(key);
  if (found == nullptr) fail(key, "is missing");
  return *found;
}

std::int64_t ConfigReader::integer(const char* key, std::int64_t least, std::int64_t most) const {
  const Json& found = value(key);
  const auto number = integer_value(found);
  if (!number || *number < least || *number > most)
    fail(key, "is " + text_of(found) + "; an integer from " + std::to_string(least) + " to " +
                  std::to_string(most) + " is expected");
  return *number;
}

std::int64_t ConfigReader::integer_or(const char* key, std::int64_t fallback, std::int64_t least,
                                      std::int64_t most) const {
  return has(key) ? integer(key, least, most) : fallback;
}

std::optional<std::int64_t> ConfigReader::optional_integer(const char* key, std::int64_t least,
                                                           std::int64_t most) const {
  return has(key) ? std::optional(integer(key, least, most)) : std::nullopt;
}

double ConfigReader::number_or(const char* key, double fallback, double least, double most) const {
  const Json* found = find(key);
  if (found == nullptr) return fallback;
  const double number = found->is_number() ? found->get<double>() : NAN;
  if (!(number >= least && number <= most))
    fail(key, "is " + text_of(*found) + "; a number from " + Json(least).dump() + " to " +
                  Json(most).dump() + " is expected");
  return number;
}

bool ConfigReader::boolean_or(const char* key, bool fallback) const {
  const Json* found = find(key);
  if (found == nullptr) return fallback;
  if (!found->is_boolean()) fail(key, "is " + text_of(*found) + "; true or false is expected");
  return found->get<bool>();
}

std::string ConfigReader::text(const char* key) const {
  const Json& found = value(key);
  if (!found.is_string()) fail(key, "is " + text_of(found) + "; text is expected");
  return found.get<std::string>();
}

std::string ConfigReader::text_or(const char* key, const std::string& fallback) const {
  return has(key) ? text(key) : fallback;
}

std::int32_t ConfigReader::id(const char* key, const Json& value, std::int64_t vocab_size) const {
  const auto number = integer_value(value);
  if (!number || *number < 0 || *number >= vocab_size)
    fail(key, "names the token id " + text_of(value) + ", outside the vocabulary of " +
                  std::to_string(vocab_size));
  return static_cast<std::int32_t>(*number);
}

std::vector<std::int32_t> ConfigReader::ids(const char* key, std::int64_t vocab_size) const {
  std::vector<std::int32_t> result;
  if (const Json* found = find(key)) {
    if (!found->is_array()) return {id(key, *found, vocab_size)};
    for (const Json& entry : *found) result.push_back(id(key, entry, vocab_size));
  }
  return result;
}

std::vector<std::vector<std::int32_t>> ConfigReader::id_lists(const char* key,
                                                              std::int64_t vocab_size) const {
  std::vector<std::vector<std::int32_t>> result;
  const Json* found = find(key);
  if (found == nullptr) return result;
  if (!found->is_array())
    fail(key, "is " + text_of(*found) + "; a list of lists of ids is expected");
  for (const Json& list : *found) {
    if (!list.is_array() || list.empty())
      fail(key, "holds " + text_of(list) + "; a list of ids is expected");
    auto& row = result.emplace_back();
    for (const Json& entry : list) row.push_back(id(key, entry, vocab_size));
  }
  return result;
}

}  // namespace mulciber
