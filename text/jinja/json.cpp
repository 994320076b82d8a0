// Writes values as JSON like Python's json.dumps, and reads JSON in the order of its keys.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "checkpoints/json.h"
#include "mulciber/error.h"
#include "text/jinja/text.h"
#include "text/jinja/value.h"

namespace mulciber::jinja {
namespace {

std::string quoted(std::string_view text, bool ensure_ascii) {
  std::string out = "\"";
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    const std::uint32_t code = next_code(text, at);
    const auto escape = [&](std::uint16_t unit) {  // a UTF-16 unit
      char buffer[8];
      std::snprintf(buffer, sizeof buffer, "\\u%04x", unit);
      out += buffer;
    };
    switch (code) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\b': out += "\\b"; break;
      case '\f': out += "\\f"; break;
      case '\n': out += "\\n"; break;
      case '\r': out += "\\r"; break;
      case '\t': out += "\\t"; break;
      default:
        if (code < 0x20 || (ensure_ascii && code > 0x7f && code < 0x10000)) {
          escape(code);
        } else if (ensure_ascii && code >= 0x10000) {
          escape(0xd800 + ((code - 0x10000) >> 10));
          escape(0xdc00 + ((code - 0x10000) & 0x3ff));
        } else {
          out += text.substr(begin, at - begin);
        }
    }
  }
  return out += '"';
}

std::string number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
  return float_repr(value);
}

std::string key_text(const Value& key) {
  switch (key.kind()) {
    case Kind::kString: return key.text();
    case Kind::kNone: return "null";
    case Kind::kBool: return key.boolean() ? "true" : "false";
    case Kind::kInt: return std::to_string(key.integer());
    case Kind::kFloat: return number(key.real());
    default:
      throw Fault(std::string("keys must be str, int, float, bool or None, not ") + type_name(key));
  }
}

class Writer {
 public:
  explicit Writer(const JsonStyle& style) : style_(style) {}

  void write(const Value& value, int level) {
    if (text.size() > style_.most_bytes) throw Fault("the JSON text is too long");
    switch (value.kind()) {
      case Kind::kNone: text += "null"; break;
      case Kind::kBool: text += value.boolean() ? "true" : "false"; break;
      case Kind::kInt: text += std::to_string(value.integer()); break;
      case Kind::kFloat: text += number(value.real()); break;
      case Kind::kString: text += quoted(value.text(), style_.ensure_ascii); break;
      case Kind::kList:
      case Kind::kTuple: {
        const auto& items = value.items();
        write_all('[', ']', items.size(), level,
                  [&](std::size_t i) { write(items[i], level + 1); });
        break;
      }
      case Kind::kDict: {
        auto entries = value.dict().items;
        if (style_.sort_keys)
          std::stable_sort(entries.begin(), entries.end(),
                           [](const auto& a, const auto& b) { return less(a.first, b.first); });
        write_all('{', '}', entries.size(), level, [&](std::size_t i) {
          text += quoted(key_text(entries[i].first), style_.ensure_ascii) + style_.key_separator;
          write(entries[i].second, level + 1);
        });
        break;
      }
      default:
        throw Fault(std::string("Object of type ") + type_name(value) +
                    " is not JSON serializable");
    }
  }

  std::string text;

 private:
  template <typename WriteItem>
  void write_all(char open, char close, std::size_t count, int level, WriteItem&& item) {
    text += open;
    for (std::size_t i = 0; i < count; ++i) {
      if (i > 0) text += style_.item_separator;
      new_line(level + 1);
      item(i);
    }
    if (count > 0) new_line(level);
    text += close;
  }
  void new_line(int level) {
    if (style_.indent >= 0)
      text += "\n" + std::string(static_cast<std::size_t>(style_.indent * level), ' ');
  }

  const JsonStyle& style_;
};

class Reader : public nlohmann::json_sax<Json> {
 public:
  explicit Reader(const std::string& where) : where_(where) {}
  Value take() { return std::move(root_); }

  bool null() override { return put(Value::none()); }
  bool boolean(bool value) override { return put(Value::boolean(value)); }
  bool number_integer(number_integer_t value) override { return put(Value::integer(value)); }
  bool number_unsigned(number_unsigned_t value) override {
    if (value > static_cast<number_unsigned_t>(INT64_MAX))
      return put(Value::real(static_cast<double>(value)));
    return put(Value::integer(static_cast<std::int64_t>(value)));
  }
  bool number_float(number_float_t value, const string_t&) override {
    return put(Value::real(value));
  }
  bool string(string_t& value) override { return put(Value::string(std::move(value))); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(true); }
  bool start_array(std::size_t) override { return open(false); }
  bool key(string_t& name) override {
    open_.back().key = std::move(name);
    return true;
  }
  bool end_object() override {
    Dict dict = std::move(open_.back().dict);
    open_.pop_back();
    return put(Value::dict(std::move(dict)));
  }
  bool end_array() override {
    std::vector<Value> items = std::move(open_.back().items);
    open_.pop_back();
    return put(Value::list(std::move(items)));
  }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    throw ModelError(where_, "is not valid JSON at byte " + std::to_string(position), {});
  }

 private:
  struct Open {
    bool object;
    std::string key;
    Dict dict;
    std::vector<Value> items;
  };

  bool open(bool object) {
    if (open_.size() >= JsonLimits().depth)
      throw ModelError(where_,
                       "nests deeper than " + std::to_string(JsonLimits().depth) + " levels", {});
    open_.push_back({object, {}, {}, {}});
    return true;
  }
  bool put(Value value) {
    if (open_.empty())
      root_ = std::move(value);
    else if (open_.back().object)
      open_.back().dict.set(Value::string(open_.back().key), std::move(value));
    else
      open_.back().items.push_back(std::move(value));
    return true;
  }

  const std::string& where_;
  Value root_;
  std::vector<Open> open_;
};

}  // namespace

std::string to_json(const Value& value, const JsonStyle& style) {
  Writer writer(style);
  writer.write(value, 0);
  return std::move(writer.text);
}

Value from_json(std::string_view text, const std::string& where) {
  Reader reader(where);
  try {
    Json::sax_parse(text.begin(), text.end(), &reader);
  } catch (const Fault& fault) {
    throw ModelError(where, fault.what(), {});
  }
  return reader.take();
}

}  // namespace mulciber::jinja
