// Python's operators on numbers, texts and lists.
#include <cmath>

#include "text/jinja/interpreter.h"
#include "text/jinja/text.h"

namespace mulciber::jinja {
namespace {

[[noreturn]] void too_large() { throw Fault("a whole number is too large"); }

std::int64_t floor_div(std::int64_t a, std::int64_t b) {
  if (b == 0) throw Fault("integer division or modulo by zero");
  if (b == -1) {
    if (a == INT64_MIN) too_large();
    return -a;
  }
  return a / b - ((a % b != 0 && (a % b < 0) != (b < 0)) ? 1 : 0);
}

double float_mod(double a, double b) {
  if (b == 0) throw Fault("float modulo by zero");
  const double rest = std::fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

Value power(const Value& a, const Value& b) {
  if (!a.is_integral() || !b.is_integral() || b.integer() < 0) {
    if (a.real() == 0 && b.real() < 0) throw Fault("0.0 cannot be raised to a negative power");
    return Value::real(std::pow(a.real(), b.real()));
  }
  std::int64_t result = 1, base = a.integer();
  if (base >= -1 && base <= 1)
    return Value::integer(base == 0                           ? b.integer() == 0
                          : base == 1 || b.integer() % 2 == 0 ? 1
                                                              : -1);
  for (std::int64_t i = 0; i < b.integer(); ++i)
    if (__builtin_mul_overflow(result, base, &result)) too_large();
  return Value::integer(result);
}

Value of_integers(const std::string& sign, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  bool overflow = false;
  if (sign == "+")
    overflow = __builtin_add_overflow(a, b, &result);
  else if (sign == "-")
    overflow = __builtin_sub_overflow(a, b, &result);
  else if (sign == "*")
    overflow = __builtin_mul_overflow(a, b, &result);
  else if (sign == "//")
    result = floor_div(a, b);
  else
    result = b == -1 ? 0 : a - floor_div(a, b) * b;
  if (overflow) too_large();
  return Value::integer(result);
}

Value of_floats(const std::string& sign, double a, double b) {
  if (sign == "+") return Value::real(a + b);
  if (sign == "-") return Value::real(a - b);
  if (sign == "*") return Value::real(a * b);
  if (sign == "//") {
    if (b == 0) throw Fault("float floor division by zero");
    return Value::real(std::floor((a - float_mod(a, b)) / b + 0.5));
  }
  return Value::real(float_mod(a, b));
}

}  // namespace

Value Interpreter::binary(const std::string& sign, const Value& a, const Value& b) {
  for (const Value* value : {&a, &b})
    if (value->is_undefined()) throw Fault(value->reason());
  if (a.is_number() && b.is_number()) {
    if (sign == "**") return power(a, b);
    if (sign == "/") {
      if (b.real() == 0) throw Fault("division by zero");
      return Value::real(a.real() / b.real());
    }
    if (a.is_integral() && b.is_integral()) return of_integers(sign, a.integer(), b.integer());
    return of_floats(sign, a.real(), b.real());
  }
  if (sign == "+" && a.is_string() && b.is_string()) return text(a.text() + b.text());
  if (sign == "+" && a.is_sequence() && a.kind() == b.kind()) {
    std::vector<Value> items = a.items();
    items.insert(items.end(), b.items().begin(), b.items().end());
    return list(std::move(items), a.kind());
  }
  if (sign == "%" && a.is_string()) return format_percent(*this, a.text(), b);
  if (sign == "*" && (a.is_integral() || b.is_integral())) {
    const Value& subject = a.is_integral() ? b : a;
    const std::int64_t asked = (a.is_integral() ? a : b).integer();
    const std::size_t times = asked > 0 ? static_cast<std::size_t>(asked) : 0;
    if (subject.is_string() || subject.is_sequence()) {
      const std::size_t size =
          subject.is_string() ? subject.text().size() : subject.items().size() * sizeof(Value);
      if (size > 0 && times > limits_.bytes / size) bytes(limits_.bytes);
      bytes(size * times);  // counted before it is made
      step(size > 0 ? times : 0);
      std::string repeated;
      std::vector<Value> items;
      for (std::size_t i = 0; size > 0 && i < times; ++i) {
        if (subject.is_string())
          repeated += subject.text();
        else
          items.insert(items.end(), subject.items().begin(), subject.items().end());
      }
      return subject.is_string() ? text(std::move(repeated))
                                 : list(std::move(items), subject.kind());
    }
  }
  throw Fault("unsupported operand type(s) for " + sign + ": '" + type_name(a) + "' and '" +
              type_name(b) + "'");
}

namespace {

/// One conversion of a format: flags, width, precision and letter.
struct Conversion {
  std::string flags;
  int width = 0, precision = -1;
  char letter = 0;
};

Conversion read_conversion(const std::string& format, std::size_t& at) {
  Conversion c;
  const auto number = [&] {
    int value = 0;
    for (; at < format.size() && format[at] >= '0' && format[at] <= '9'; ++at) {
      value = value * 10 + (format[at] - '0');
      if (value > 1000) throw Fault("a format asks for more than 1000 characters");
    }
    return value;
  };
  while (at < format.size() && std::string_view("-+ 0#").find(format[at]) != std::string_view::npos)
    c.flags += format[at++];
  c.width = number();
  if (at < format.size() && format[at] == '.') {
    ++at;
    c.precision = number();
  }
  if (at >= format.size()) throw Fault("incomplete format");
  c.letter = format[at++];
  return c;
}

std::string printed(const Conversion& c, const Value& value) {
  char buffer[2048];
  std::string pattern = "%" + c.flags + std::to_string(c.width);
  // A width of 0 would be read as a flag, so it is left out.
  if (c.width == 0) pattern.pop_back();
  if (c.precision >= 0) pattern += "." + std::to_string(c.precision);
  const std::string_view floats = "eEfFgG", integers = "diuxXo";
  if (integers.find(c.letter) != integers.npos) {
    if (!value.is_number())
      throw Fault(std::string("%d format: a number is required, not ") + type_name(value));
    if (!value.is_integral() && !(std::abs(value.real()) < 9e18))
      throw Fault("a number is too large for its format");
    const std::int64_t number =
        value.is_integral() ? value.integer() : static_cast<std::int64_t>(value.real());
    const bool decimal = c.letter == 'd' || c.letter == 'i' || c.letter == 'u';
    std::snprintf(buffer, sizeof buffer, (pattern + "l" + (decimal ? 'd' : c.letter)).c_str(),
                  static_cast<long>(number));
  } else if (floats.find(c.letter) != floats.npos) {
    if (!value.is_number())
      throw Fault(std::string("must be real number, not ") + type_name(value));
    std::snprintf(buffer, sizeof buffer, (pattern + c.letter).c_str(), value.real());
  } else {
    throw Fault(std::string("unsupported format character '") + c.letter + "'");
  }
  return buffer;
}

}  // namespace

Value format_percent(Interpreter& interpreter, const std::string& format, const Value& values) {
  std::string out;
  std::size_t used = 0;
  const bool many = values.is(Kind::kTuple);
  const auto next = [&]() -> Value {
    if (used >= (many ? values.items().size() : 1))
      throw Fault("not enough arguments for format string");
    return many ? values.items()[used++] : (++used, values);
  };
  for (std::size_t at = 0; at < format.size();) {
    const char c = format[at++];
    if (c != '%') {
      out += c;
      continue;
    }
    std::string key;
    if (at < format.size() && format[at] == '(') {
      const std::size_t end = format.find(')', at);
      if (end == format.npos || !values.is(Kind::kDict)) throw Fault("format requires a mapping");
      key = format.substr(at + 1, end - at - 1);
      at = end + 1;
    }
    const Conversion conversion = read_conversion(format, at);
    if (conversion.letter == '%') {
      out += '%';
      continue;
    }
    Value value;
    if (key.empty()) {
      value = next();
    } else {
      const Value* found = values.dict().find(key);
      if (!found) throw Fault("there is no '" + key + "' to format");
      used = 1;
      value = *found;
    }
    if (conversion.letter == 's' || conversion.letter == 'r') {
      std::string shown = conversion.letter == 's' ? interpreter.to_text(value) : to_repr(value);
      if (conversion.precision >= 0)
        shown.resize(offset_of(shown, static_cast<std::size_t>(conversion.precision)));
      const std::size_t length = length_of(shown),
                        width = static_cast<std::size_t>(conversion.width);
      const std::string fill(width > length ? width - length : 0, ' ');
      out += conversion.flags.find('-') == std::string::npos ? fill + shown : shown + fill;
    } else {
      out += printed(conversion, value);
    }
    interpreter.step(1 + out.size() / 1024);
  }
  if (many ? used < values.items().size() : used == 0 && !values.is(Kind::kDict))
    throw Fault("not all arguments converted during string formatting");
  return interpreter.text(std::move(out));
}

}  // namespace mulciber::jinja
