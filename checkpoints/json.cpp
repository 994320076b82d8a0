#include "checkpoints/json.h"

#include <utf8proc.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <vector>

#include "mulciber/error.h"

namespace mulciber {
namespace {

/// Builds the document value by value, with limits and without repeated keys. nlohmann's own
/// builder keeps the last of two equal keys and has no limits.
class Builder : public nlohmann::json_sax<Json> {
 public:
  Builder(const std::string& where, const JsonLimits& limits) : where_(where), limits_(limits) {}

  Json take() { return std::move(root_); }

  bool null() override { return put(nullptr); }
  bool boolean(bool value) override { return put(value); }
  bool number_integer(number_integer_t value) override { return put(value); }
  bool number_unsigned(number_unsigned_t value) override { return put(value); }
  bool number_float(number_float_t value, const string_t&) override { return put(value); }
  bool string(string_t& value) override { return put(std::move(value)); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(Json::object()); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    Json& object = *open_.back();
    if (object.contains(name))
      throw ModelError(where_, "key '" + printable(name) + "' stands twice in one object",
                       "the file is malformed: download it again");
    slot_ = &object[std::move(name)];
    return true;
  }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override {
    // The library's message starts with its own name and an error number in brackets.
    std::string_view text = error.what();
    if (const auto bracket = text.find("] "); bracket != text.npos) text.remove_prefix(bracket + 2);
    throw ModelError(
        where_, "is not valid JSON at byte " + std::to_string(position) + ": " + printable(text),
        "the file is damaged: download it again");
  }

 private:
  Json* place(Json value) {
    if (++values_ > limits_.values)
      throw ModelError(where_, "holds more than " + std::to_string(limits_.values) + " JSON values",
                       "no known model needs that many");
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    if (open_.back()->is_array()) {
      open_.back()->push_back(std::move(value));
      return &open_.back()->back();
    }
    *slot_ = std::move(value);
    return slot_;
  }

  bool put(Json value) {
    place(std::move(value));
    return true;
  }

  bool open(Json container) {
    if (open_.size() >= limits_.depth)
      throw ModelError(where_, "nests deeper than " + std::to_string(limits_.depth) + " levels",
                       "no known model needs that");
    open_.push_back(place(std::move(container)));
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  const std::string& where_;
  const JsonLimits& limits_;
  Json root_;
  std::vector<Json*> open_;  // the containers around the current position, outermost first
  Json* slot_ = nullptr;     // where the value of the last key is stored
  std::size_t values_ = 0;
};

}  // namespace

Json parse_json(std::string_view text, const std::string& where, const JsonLimits& limits) {
  if (text.size() > limits.bytes)
    throw ModelError(where,
                     "is " + std::to_string(text.size()) + " bytes of JSON; the limit is " +
                         std::to_string(limits.bytes),
                     {});
  Builder builder(where, limits);
  Json::sax_parse(text.begin(), text.end(), &builder);
  return builder.take();
}

Json read_json(const ModelFile& file, const JsonLimits& limits) {
  std::vector<std::byte> scratch;
  return parse_json(file.whole(scratch, limits.bytes), file.path().string(), limits);
}

std::string json_line(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string printable(std::string_view name) {
  constexpr std::size_t kLongest = 160;
  std::string out;
  while (!name.empty() && out.size() < kLongest) {
    utf8proc_int32_t code = -1;
    const auto length = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(name.data()),
                                         static_cast<utf8proc_ssize_t>(name.size()), &code);
    if (length > 0 && code >= 0x20 && code != 0x7f && !(code >= 0x80 && code < 0xa0)) {
      out.append(name.substr(0, static_cast<std::size_t>(length)));
      name.remove_prefix(static_cast<std::size_t>(length));
    } else {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\x%02x", static_cast<unsigned char>(name[0]));
      out += escaped;
      name.remove_prefix(1);
    }
  }
  if (!name.empty()) out += "...";
  return out;
}

}  // namespace mulciber
