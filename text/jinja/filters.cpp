// Filters of single values and texts; filters_lists.cpp has those of lists.
#include "text/jinja/filters.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "text/jinja/interpreter.h"
#include "text/jinja/text.h"

namespace mulciber::jinja {

std::vector<const Value*> Arguments::bind(std::string_view what, std::size_t required,
                                          std::initializer_list<std::string_view> names) const {
  const auto refuse = [&](const std::string& problem) {
    throw Fault(std::string(what) + " " + problem);
  };
  std::vector<const Value*> bound(names.size(), nullptr);
  if (positional.size() > names.size())
    refuse("takes at most " + std::to_string(names.size()) + " arguments");
  for (std::size_t i = 0; i < positional.size(); ++i) bound[i] = &positional[i];
  for (const auto& [name, value] : named) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) refuse("takes no argument '" + name + "'");
    const Value*& place = bound[static_cast<std::size_t>(found - names.begin())];
    if (place) refuse("got two values for '" + name + "'");
    place = &value;
  }
  for (std::size_t i = 0; i < required; ++i)
    if (!bound[i]) refuse("needs the argument '" + std::string(names.begin()[i]) + "'");
  return bound;
}

std::int64_t integer_of(const Value& value, std::string_view what) {
  if (!value.is_integral())
    throw Fault(std::string(what) + " must be a whole number, not " + type_name(value));
  return value.integer();
}

namespace {

using Args = const Arguments&;

Value upper(Interpreter& i, const Value& self, Args) { return i.text(to_upper(i.to_text(self))); }
Value lower(Interpreter& i, const Value& self, Args) { return i.text(to_lower(i.to_text(self))); }
Value capitalize(Interpreter& i, const Value& self, Args) {
  return i.text(to_capital(i.to_text(self)));
}
Value string(Interpreter& i, const Value& self, Args) {
  return self.is_string() ? self : i.text(i.to_text(self));
}
Value safe(Interpreter& i, const Value& self, Args) { return string(i, self, {}); }

/// Words begin after a blank, a dash or an opening bracket, unlike in str.title().
Value title(Interpreter& i, const Value& self, Args) {
  const std::string source = i.to_text(self);
  std::string out, word;
  const auto flush = [&] {
    out += to_capital(word);
    word.clear();
  };
  for (std::size_t at = 0; at < source.size();) {
    const std::size_t begin = at;
    const std::uint32_t code = next_code(source, at);
    const bool separates =
        is_space(code) || (code < 0x80 && std::string_view("-({[<").find(static_cast<char>(code)) !=
                                              std::string_view::npos);
    if (separates)
      flush(), out += source.substr(begin, at - begin);
    else
      word += source.substr(begin, at - begin);
  }
  flush();
  return i.text(std::move(out));
}

Value trim(Interpreter& i, const Value& self, Args args) {
  const auto a = args.bind("filter 'trim'", 0, {"chars"});
  const std::string source = i.to_text(self);
  if (!a[0] || a[0]->is_none()) return i.text(std::string(strip(source, nullptr, true, true)));
  const std::string chars = i.to_text(*a[0]);
  i.step(source.size() * chars.size() / 64);
  return i.text(std::string(strip(source, &chars, true, true)));
}

Value fallback(Interpreter&, const Value& self, Args args) {
  const auto a = args.bind("filter 'default'", 0, {"default_value", "boolean"});
  const bool also_false = a[1] && truth(*a[1]);
  if (self.is_undefined() || (also_false && !truth(self))) return a[0] ? *a[0] : Value::string("");
  return self;
}

Value replace(Interpreter& i, const Value& self, Args args) {
  const auto a = args.bind("filter 'replace'", 2, {"old", "new", "count"});
  return replaced(i, i.to_text(self), i.to_text(*a[0]), i.to_text(*a[1]),
                  a[2] && !a[2]->is_none() ? integer_of(*a[2], "count") : -1);
}

Value to_int(Interpreter& i, const Value& self, Args args) {
  const auto a = args.bind("filter 'int'", 0, {"default", "base"});
  Value otherwise = a[0] ? *a[0] : Value::integer(0);
  const std::int64_t base = a[1] ? integer_of(*a[1], "base") : 10;
  const auto truncated = [&](double value) {
    if (!(std::abs(value) < 9.2e18)) return otherwise;
    return Value::integer(static_cast<std::int64_t>(value));
  };
  if (self.is_undefined()) throw Fault(self.reason());
  if (self.is_integral()) return Value::integer(self.integer());
  if (self.is(Kind::kFloat)) return truncated(self.real());
  if (!self.is_string() || base < 2 || base > 36) return otherwise;
  i.step(self.weight());
  std::string digits(strip(self.text(), nullptr, true, true));
  digits.erase(std::remove(digits.begin(), digits.end(), '_'), digits.end());
  std::string_view rest = digits;
  if (rest.starts_with('+') && !rest.substr(1).starts_with('-')) rest.remove_prefix(1);
  if (base == 16 && (rest.starts_with("0x") || rest.starts_with("0X"))) rest.remove_prefix(2);
  std::int64_t whole = 0;
  const auto [end, error] =
      std::from_chars(rest.data(), rest.data() + rest.size(), whole, static_cast<int>(base));
  if (error == std::errc() && end == rest.data() + rest.size() && !rest.empty())
    return Value::integer(whole);
  const std::optional<double> real = parse_float(self.text());
  return real ? truncated(*real) : otherwise;
}

Value to_float(Interpreter& i, const Value& self, Args args) {
  const auto a = args.bind("filter 'float'", 0, {"default"});
  if (self.is_undefined()) throw Fault(self.reason());
  i.step(self.weight());
  if (self.is_number()) return Value::real(self.real());
  if (self.is_string())
    if (const std::optional<double> value = parse_float(self.text())) return Value::real(*value);
  return a[0] ? *a[0] : Value::real(0);
}

Value absolute(Interpreter& i, const Value& self, Args) {
  if (!self.is_number())
    throw Fault(std::string("bad operand type for abs(): '") + type_name(self) + "'");
  if (self.is(Kind::kFloat)) return Value::real(std::abs(self.real()));
  return self.integer() < 0 ? i.binary("-", Value::integer(0), self)
                            : Value::integer(self.integer());
}

Value rounded(Interpreter&, const Value& self, Args args) {
  const auto a = args.bind("filter 'round'", 0, {"precision", "method"});
  if (!self.is_number()) throw Fault("filter 'round' needs a number");
  const std::int64_t precision = a[0] ? integer_of(*a[0], "precision") : 0;
  if (std::abs(precision) > 300) throw Fault("filter 'round' takes a precision of at most 300");
  const std::string method = a[1] && a[1]->is_string() ? a[1]->text() : "common";
  const double scale = std::pow(10.0, static_cast<double>(precision));
  if (method == "ceil") return Value::real(std::ceil(self.real() * scale) / scale);
  if (method == "floor") return Value::real(std::floor(self.real() * scale) / scale);
  if (method != "common") throw Fault("method must be common, ceil or floor");
  if (self.is_integral() && precision >= 0) return Value::integer(self.integer());
  if (precision < 0) {
    const double to_tens = std::nearbyint(self.real() * scale) / scale;
    return self.is_integral() ? Value::integer(static_cast<std::int64_t>(to_tens))
                              : Value::real(to_tens);
  }
  // Rounds through decimal digits, like Python: 2.675 is slightly less than it looks.
  char buffer[768];
  std::snprintf(buffer, sizeof buffer, "%.*f", static_cast<int>(precision), self.real());
  return Value::real(parse_float(buffer).value_or(self.real()));
}

Value escape(Interpreter& i, const Value& self, Args) {
  std::string out;
  for (const char c : i.to_text(self)) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '\'')
      out += "&#39;";
    else if (c == '"')
      out += "&#34;";
    else
      out += c;
  }
  return i.text(std::move(out));
}

Value indent(Interpreter& i, const Value& self, Args args) {
  const auto a = args.bind("filter 'indent'", 0, {"width", "first", "blank"});
  const std::string source = i.to_text(self) + "\n";
  const bool first = a[1] && truth(*a[1]), blank = a[2] && truth(*a[2]);
  std::string margin = "    ";
  const std::vector<std::string_view> lines = split_lines(source, false);
  if (a[0] && a[0]->is_string())
    margin = a[0]->text();
  else if (a[0])
    margin = padding(i, integer_of(*a[0], "width"));
  i.bytes(source.size());
  for (std::size_t line = 0; line < lines.size(); ++line) i.bytes(margin.size());
  std::string out;
  for (std::size_t line = 0; line < lines.size(); ++line) {
    if (line > 0) out += '\n';
    const bool indented = line == 0 ? first : blank || !lines[line].empty();
    if (indented) out += margin;
    out += lines[line];
  }
  return i.text(std::move(out));
}

Value center(Interpreter& i, const Value& self, Args args) {
  const auto a = args.bind("filter 'center'", 0, {"width"});
  return centered(i, i.to_text(self), a[0] ? integer_of(*a[0], "width") : 80, " ");
}

Value truncate(Interpreter& i, const Value& self, Args args) {
  const auto a = args.bind("filter 'truncate'", 0, {"length", "killwords", "end", "leeway"});
  const std::string source = i.to_text(self), end = a[2] ? i.to_text(*a[2]) : "...";
  const std::int64_t length = a[0] ? integer_of(*a[0], "length") : 255,
                     leeway = a[3] && !a[3]->is_none() ? integer_of(*a[3], "leeway") : 5;
  const auto end_length = static_cast<std::int64_t>(length_of(end));
  if (length < end_length || leeway < 0)
    throw Fault("filter 'truncate' needs a length that its end fits in");
  if (static_cast<std::int64_t>(length_of(source)) <= length ||
      static_cast<std::int64_t>(length_of(source)) - leeway <= length)
    return i.text(source);
  std::string kept =
      source.substr(0, offset_of(source, static_cast<std::size_t>(length - end_length)));
  if (!(a[1] && truth(*a[1])))
    if (const std::size_t blank = kept.rfind(' '); blank != kept.npos) kept.resize(blank);
  return i.text(kept + end);
}

Value wordcount(Interpreter& i, const Value& self, Args) {
  const std::string source = i.to_text(self);
  std::int64_t words = 0;
  bool inside = false;
  for (std::size_t at = 0; at < source.size();) {
    const std::uint32_t code = next_code(source, at);
    const bool word = is_letter(code) || is_digit(code) || code == '_';
    words += word && !inside;
    inside = word;
  }
  return Value::integer(words);
}

Value format(Interpreter& i, const Value& self, Args args) {
  if (args.named.empty())
    return format_percent(i, i.to_text(self), i.list(args.positional, Kind::kTuple));
  if (!args.positional.empty())
    throw Fault("filter 'format' takes arguments with names or without, not both");
  Dict values;
  for (const auto& [name, value] : args.named) values.set(Value::string(name), value);
  return format_percent(i, i.to_text(self), Value::dict(std::move(values)));
}

Value tojson(Interpreter& i, const Value& self, Args args) {
  const auto a =
      args.bind("filter 'tojson'", 0, {"ensure_ascii", "indent", "separators", "sort_keys"});
  JsonStyle style;
  style.ensure_ascii = a[0] && truth(*a[0]);
  if (a[1] && a[1]->is_integral()) {
    // In Python a negative indent gives only line breaks.
    style.indent = static_cast<int>(std::clamp<std::int64_t>(a[1]->integer(), 0, 1000));
    style.item_separator = ",";
  }
  if (a[2] && !a[2]->is_none()) {
    const std::vector<Value> both = i.elements(*a[2]);
    if (both.size() != 2 || !both[0].is_string() || !both[1].is_string())
      throw Fault("separators must be two strings");
    style.item_separator = both[0].text();
    style.key_separator = both[1].text();
  }
  style.sort_keys = a[3] && truth(*a[3]);
  style.most_bytes = i.bytes_left();
  i.step(self.weight());
  return i.text(to_json(self, style));
}

}  // namespace

Value replaced(Interpreter& i, const std::string& text, const std::string& from,
               const std::string& to, std::int64_t most) {
  std::vector<std::size_t> places;  // byte offsets where `from` begins
  const auto wanted = [&] { return most < 0 || places.size() < static_cast<std::size_t>(most); };
  i.step(text.size() / 16);
  if (from.empty()) {
    for (std::size_t at = 0; wanted() && at <= text.size();) {
      places.push_back(at);
      if (at == text.size()) break;
      next_code(text, at);
    }
  } else {
    for (std::size_t at = text.find(from); wanted() && at != text.npos;
         at = text.find(from, at + from.size()))
      places.push_back(at);
  }
  for (std::size_t n = 0; n < places.size(); ++n) i.bytes(to.size());
  i.step(places.size());
  std::string out;
  std::size_t at = 0;
  for (const std::size_t place : places) {
    out += text.substr(at, place - at) + to;
    at = place + from.size();
  }
  return i.text(out + text.substr(at));
}

std::string padding(Interpreter& i, std::int64_t width, std::string_view fill) {
  const std::size_t count = width > 0 ? static_cast<std::size_t>(width) : 0;
  if (count > 1'000'000) throw Fault("text is padded by more than a million characters");
  i.bytes(count * fill.size());
  std::string out;
  for (std::size_t n = 0; n < count; ++n) out += fill;
  return out;
}

Value centered(Interpreter& i, const std::string& text, std::int64_t width,
               const std::string& fill) {
  const auto length = static_cast<std::int64_t>(length_of(text));
  const std::int64_t missing = std::max<std::int64_t>(width - length, 0);
  const std::int64_t left = missing / 2 + (missing & width & 1);  // like str.center()
  return i.text(padding(i, left, fill) + text + padding(i, missing - left, fill));
}

std::optional<double> parse_float(std::string_view text) {
  std::string digits(strip(text, nullptr, true, true));
  digits.erase(std::remove(digits.begin(), digits.end(), '_'), digits.end());
  std::string_view rest = digits;
  if (rest.starts_with('+')) rest.remove_prefix(1);
  if (rest.empty() || rest.starts_with("+") || rest.find_first_of("xX(") != rest.npos)
    return std::nullopt;
  double value = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
  if (end != rest.data() + rest.size() || error == std::errc::invalid_argument) return std::nullopt;
  return value;
}

const std::vector<NamedMethod>& text_filters() {
  static const std::vector<NamedMethod> kFilters = {
      {"upper", upper},       {"lower", lower},         {"capitalize", capitalize},
      {"title", title},       {"trim", trim},           {"string", string},
      {"safe", safe},         {"default", fallback},    {"d", fallback},
      {"replace", replace},   {"int", to_int},          {"float", to_float},
      {"abs", absolute},      {"round", rounded},       {"escape", escape},
      {"e", escape},          {"indent", indent},       {"center", center},
      {"truncate", truncate}, {"wordcount", wordcount}, {"format", format},
      {"tojson", tojson},
  };
  return kFilters;
}

Method find_in(const std::vector<NamedMethod>& table, std::string_view name) {
  for (const NamedMethod& entry : table)
    if (entry.name == name) return entry.method;
  return nullptr;
}

Method find_filter(std::string_view name) {
  const Method method = find_in(text_filters(), name);
  return method ? method : find_in(list_filters(), name);
}

}  // namespace mulciber::jinja
