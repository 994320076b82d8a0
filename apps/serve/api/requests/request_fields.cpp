#include "apps/serve/api/requests/request_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "checkpoints/json.h"
#include "mulciber/error.h"

namespace mulciber::apps::serve {
namespace {

// A conversation of a thousand messages has a few thousand values.
constexpr JsonLimits kBodyLimits = {
    .bytes = std::size_t{1} << 30, .depth = 32, .values = 1'000'000};

constexpr uint64_t kMostId = std::numeric_limits<int32_t>::max();

Json parse_body(std::string_view body) {
  try {
    return parse_json(body, "the body", kBodyLimits);
  } catch (const ModelError& error) {
    throw ApiError(400, error.where() + " " + error.problem(), "", "invalid_json");
  }
}

}  // namespace

RequestFields::RequestFields(std::string_view body) : RequestFields(parse_body(body), "") {}

RequestFields::RequestFields(Json object, std::string where)
    : object_(std::move(object)), where_(std::move(where)) {
  if (!object_.is_object()) refuse(where_, "a JSON object is expected here");
}

std::string RequestFields::path(const std::string& name) const {
  return where_.empty() ? name : where_ + "." + name;
}

const Json* RequestFields::find(const std::string& name) {
  known_.insert(name);
  const auto found = object_.find(name);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

const Json& RequestFields::needed(const std::string& name) {
  const Json* value = find(name);
  if (!value) refuse(path(name), path(name) + " is missing");
  return *value;
}

std::optional<std::string> RequestFields::text(const std::string& name) {
  const Json* value = find(name);
  if (!value) return std::nullopt;
  if (!value->is_string()) refuse(path(name), path(name) + " must be a string");
  return value->get<std::string>();
}

std::string RequestFields::needed_text(const std::string& name) {
  needed(name);
  return *text(name);
}

std::optional<bool> RequestFields::flag(const std::string& name) {
  const Json* value = find(name);
  if (!value) return std::nullopt;
  if (!value->is_boolean()) refuse(path(name), path(name) + " must be true or false");
  return value->get<bool>();
}

std::optional<double> RequestFields::number(const std::string& name, double low, double high) {
  const Json* value = find(name);
  if (!value) return std::nullopt;
  if (!value->is_number() || !(value->get<double>() >= low && value->get<double>() <= high))
    refuse(path(name), fmt::format("{} must be a number from {:g} to {:g}", path(name), low, high));
  return value->get<double>();
}

std::optional<uint64_t> RequestFields::whole(const std::string& name, uint64_t low, uint64_t high) {
  const Json* value = find(name);
  if (!value) return std::nullopt;
  if (!value->is_number_unsigned() || value->get<uint64_t>() < low || value->get<uint64_t>() > high)
    refuse(path(name),
           fmt::format("{} must be a whole number from {} to {}", path(name), low, high));
  return value->get<uint64_t>();
}

std::vector<std::string> RequestFields::texts(const std::string& name, size_t most) {
  const Json* value = find(name);
  if (!value) return {};
  const Json list = value->is_array() ? *value : Json::array({*value});
  if (list.size() > most)
    refuse(path(name),
           fmt::format("{} holds {} texts, {} are taken", path(name), list.size(), most));
  std::vector<std::string> made;
  for (const Json& one : list) {
    if (!one.is_string()) refuse(path(name), path(name) + " must be a string or a list of strings");
    made.push_back(one.get<std::string>());
  }
  return made;
}

std::vector<TextOrIds> RequestFields::texts_or_ids(const std::string& name, size_t most) {
  const Json* value = find(name);
  std::vector<TextOrIds> made;
  if (!value || !value->is_array() || value->empty() || value->front().is_string()) {
    for (std::string& text : texts(name, most)) made.push_back({std::move(text), {}});
    return made;
  }
  const auto wrong = [&] {
    refuse(path(name), path(name) +
                           " must be a text, a list of texts, a list of token ids, or a "
                           "list of such lists, none of which is empty");
  };
  const auto add = [&](const Json& ids) {
    if (!ids.is_array() || ids.empty()) wrong();
    TextOrIds& one = made.emplace_back();
    for (const Json& id : ids) {
      if (!id.is_number_unsigned() || id.get<uint64_t>() > kMostId) wrong();
      one.ids.push_back(id.get<uint32_t>());
    }
  };
  if (!value->front().is_array()) {
    add(*value);
    return made;
  }
  if (value->size() > most)
    refuse(path(name),
           fmt::format("{} holds {} lists, {} are taken", path(name), value->size(), most));
  for (const Json& ids : *value) add(ids);
  return made;
}

void RequestFields::only(const std::string& name, const Json& value, const std::string& why) {
  const Json* found = find(name);
  if (found && *found != value)
    refuse(path(name), path(name) + " is not supported here: " + why, "unsupported_parameter");
}

void RequestFields::only_usual(const std::string& name, const std::string& value) {
  const auto found = text(name);
  if (found && *found != value)
    refuse(path(name),
           fmt::format("Unsupported value: '{}' does not support '{}' with this model. Supported "
                       "values are: '{}'.",
                       path(name), printable(*found), value),
           "unsupported_value");
}

void RequestFields::ignore(const std::string& name) { known_.insert(name); }

void RequestFields::finish() const {
  for (const auto& [name, value] : object_.items())
    if (!value.is_null() && !known_.contains(name))
      refuse(printable(name), "Unrecognized request argument supplied: " + printable(name),
             "unknown_parameter");
}

}  // namespace mulciber::apps::serve
