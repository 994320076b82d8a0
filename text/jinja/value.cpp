#include "text/jinja/value.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "text/jinja/function.h"
#include "text/jinja/text.h"

namespace mulciber::jinja {

Value Value::undefined(std::string why) {
  Value value;
  value.object_ = std::make_shared<std::string>(std::move(why));
  return value;
}

Value Value::boolean(bool value) {
  Value result(Kind::kBool);
  result.integer_ = value;
  return result;
}

Value Value::integer(std::int64_t value) {
  Value result(Kind::kInt);
  result.integer_ = value;
  return result;
}

Value Value::real(double value) {
  Value result(Kind::kFloat);
  result.real_ = value;
  return result;
}

Value Value::string(std::string text) {
  Value result(Kind::kString);
  result.object_ = std::make_shared<std::string>(std::move(text));
  return result;
}

// Counts an element of a list or dict under construction.
void Value::count(const Value& element) {
  // Printing and comparing recurse into nested values.
  constexpr int kMostNesting = 100;
  // A short list may hold another twice, which holds a third twice, and so on: its weight grows
  // exponentially.
  constexpr std::size_t kMostWeight = 4'000'000;
  if (element.nesting_ >= kMostNesting)
    throw Fault("lists nest deeper than " + std::to_string(kMostNesting) + " levels");
  nesting_ = std::max(nesting_, static_cast<std::uint16_t>(element.nesting_ + 1));
  const std::size_t weight = weight_ + element.weight();
  if (weight > kMostWeight) throw Fault("a list holds too many values");
  weight_ = static_cast<std::uint32_t>(weight);
  transient_ |= element.transient_;
}

Value Value::list(std::vector<Value> items, Kind kind) {
  Value result(kind);
  for (const Value& item : items) result.count(item);
  result.object_ = std::make_shared<List>(List{std::move(items)});
  return result;
}

Value Value::dict(Dict items) {
  Value result(Kind::kDict);
  for (const auto& [key, value] : items.items) {
    result.count(key);
    result.count(value);
  }
  result.object_ = std::make_shared<Dict>(std::move(items));
  return result;
}

Value Value::name_space(Dict items) {
  Value result(Kind::kNamespace);
  result.transient_ = true;
  result.object_ = std::make_shared<Dict>(std::move(items));
  return result;
}

Value Value::function(Function function) {
  Value result(Kind::kFunction);
  result.transient_ = true;
  result.object_ = std::make_shared<Function>(std::move(function));
  return result;
}

Value Value::loop(Loop* loop) {
  Value result(Kind::kLoop);
  result.transient_ = true;
  result.object_ =
      std::shared_ptr<void>(loop, [](void*) {});  // the loop lives on the stack of its evaluation
  return result;
}

std::string Value::reason() const {
  return object_ ? *static_cast<const std::string*>(object_.get()) : "a value is undefined";
}

bool Value::same_as(const Value& other) const {
  if (kind_ != other.kind_) return false;
  if (is_number()) return equal(*this, other);
  return object_ == other.object_ || (is_string() && text() == other.text());
}

const Value* Dict::find(const Value& key) const {
  for (const auto& [name, value] : items)
    if (equal(name, key)) return &value;
  return nullptr;
}

const Value* Dict::find(std::string_view key) const {
  for (const auto& [name, value] : items)
    if (name.is_string() && name.text() == key) return &value;
  return nullptr;
}

void Dict::set(Value key, Value value) {
  if (key.is(Kind::kList) || key.is(Kind::kDict))
    throw Fault(std::string("unhashable type: '") + type_name(key) + "'");
  for (auto& [name, old] : items) {
    if (equal(name, key)) {
      old = std::move(value);
      return;
    }
  }
  items.emplace_back(std::move(key), std::move(value));
}

const char* type_name(const Value& value) {
  switch (value.kind()) {
    case Kind::kUndefined: return "Undefined";
    case Kind::kNone: return "NoneType";
    case Kind::kBool: return "bool";
    case Kind::kInt: return "int";
    case Kind::kFloat: return "float";
    case Kind::kString: return "str";
    case Kind::kList: return "list";
    case Kind::kTuple: return "tuple";
    case Kind::kDict: return "dict";
    case Kind::kIterator: return "generator";
    case Kind::kNamespace: return "Namespace";
    case Kind::kFunction: return "function";
    case Kind::kLoop: return "LoopContext";
  }
  return "?";
}

bool truth(const Value& value) {
  switch (value.kind()) {
    case Kind::kUndefined:
    case Kind::kNone: return false;
    case Kind::kBool:
    case Kind::kInt: return value.integer() != 0;
    case Kind::kFloat: return value.real() != 0;
    case Kind::kString: return !value.text().empty();
    case Kind::kList:
    case Kind::kTuple: return !value.items().empty();
    case Kind::kDict: return !value.dict().items.empty();
    default: return true;
  }
}

bool equal(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) {
    if (a.is_integral() && b.is_integral()) return a.integer() == b.integer();
    return a.real() == b.real();
  }
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case Kind::kUndefined:
    case Kind::kNone: return true;
    case Kind::kString: return a.text() == b.text();
    case Kind::kList:
    case Kind::kTuple:
      return std::equal(a.items().begin(), a.items().end(), b.items().begin(), b.items().end(),
                        equal);
    case Kind::kDict: {
      const auto& entries = a.dict().items;
      return entries.size() == b.dict().items.size() &&
             std::all_of(entries.begin(), entries.end(), [&](const auto& entry) {
               const Value* other = b.dict().find(entry.first);
               return other && equal(entry.second, *other);
             });
    }
    default: return a.same_as(b);
  }
}

bool less(const Value& a, const Value& b) {
  for (const Value* value : {&a, &b})
    if (value->is_undefined()) throw Fault(value->reason());
  if (a.is_number() && b.is_number()) {
    if (a.is_integral() && b.is_integral()) return a.integer() < b.integer();
    return a.real() < b.real();
  }
  if (a.is_string() && b.is_string())
    return a.text() < b.text();  // UTF-8 sorts in the order of code points
  if (a.is_sequence() && a.kind() == b.kind()) {
    const auto &x = a.items(), &y = b.items();
    for (std::size_t i = 0; i < std::min(x.size(), y.size()); ++i)
      if (!equal(x[i], y[i])) return less(x[i], y[i]);
    return x.size() < y.size();
  }
  throw Fault(std::string("'<' not supported between instances of '") + type_name(a) + "' and '" +
              type_name(b) + "'");
}

std::string float_repr(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[32];
  const auto end =
      std::to_chars(buffer, buffer + sizeof buffer, std::abs(value), std::chars_format::scientific)
          .ptr;
  std::string digits(buffer, end);
  const std::size_t e = digits.find('e');
  const int exponent = std::stoi(digits.substr(e + 1));
  digits.resize(e);
  digits.erase(std::remove(digits.begin(), digits.end(), '.'), digits.end());
  std::string text = std::signbit(value) ? "-" : "";
  if (exponent < -4 || exponent >= 16) {
    text += digits[0];
    if (digits.size() > 1) text += "." + digits.substr(1);
    const int size = std::abs(exponent);
    return text + (exponent < 0 ? "e-" : "e+") + (size < 10 ? "0" : "") + std::to_string(size);
  }
  if (exponent < 0)
    return text + "0." + std::string(static_cast<std::size_t>(-exponent - 1), '0') + digits;
  const std::size_t whole = static_cast<std::size_t>(exponent) + 1;
  if (digits.size() <= whole) return text + digits + std::string(whole - digits.size(), '0') + ".0";
  return text + digits.substr(0, whole) + "." + digits.substr(whole);
}

std::string to_text(const Value& value) {
  if (value.is_string()) return value.text();
  if (value.is_undefined()) return {};
  return to_repr(value);
}

std::string to_repr(const Value& value) {
  const auto join = [](const auto& items, auto&& show) {
    std::string text;
    for (const auto& item : items) text += (text.empty() ? "" : ", ") + show(item);
    return text;
  };
  switch (value.kind()) {
    case Kind::kUndefined: return "Undefined";
    case Kind::kNone: return "None";
    case Kind::kBool: return value.boolean() ? "True" : "False";
    case Kind::kInt: return std::to_string(value.integer());
    case Kind::kFloat: return float_repr(value.real());
    case Kind::kString: return string_repr(value.text());
    case Kind::kList: return "[" + join(value.items(), to_repr) + "]";
    case Kind::kTuple:
      return "(" + join(value.items(), to_repr) + (value.items().size() == 1 ? ",)" : ")");
    case Kind::kDict:
      return "{" +
             join(value.dict().items,
                  [](const auto& entry) {
                    return to_repr(entry.first) + ": " + to_repr(entry.second);
                  }) +
             "}";
    default: throw Fault(std::string("a ") + type_name(value) + " cannot be printed");
  }
}

}  // namespace mulciber::jinja
