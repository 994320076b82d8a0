// The expressions of the interpreter.
#include <algorithm>
#include <cmath>

#include "text/jinja/interpreter.h"
#include "text/jinja/text.h"

namespace mulciber::jinja {

Value Interpreter::text(std::string text) {
  bytes(text.size() + sizeof(Value));
  return Value::string(std::move(text));
}

Value Interpreter::list(std::vector<Value> items, Kind kind) {
  step(items.size());
  bytes(items.size() * sizeof(Value) + sizeof(List));
  return Value::list(std::move(items), kind);
}

std::string Interpreter::to_text(const Value& value) {
  step(value.weight());
  std::string text = jinja::to_text(value);
  bytes(text.size());
  return text;
}

std::vector<Value> Interpreter::elements(const Value& value) {
  std::vector<Value> items;
  switch (value.kind()) {
    case Kind::kUndefined: break;
    case Kind::kString:
      for (std::size_t at = 0; at < value.text().size();) {
        const std::size_t begin = at;
        next_code(value.text(), at);
        items.push_back(text(value.text().substr(begin, at - begin)));
      }
      break;
    case Kind::kList:
    case Kind::kTuple: items = value.items(); break;
    case Kind::kDict:
      for (const auto& [key, entry] : value.dict().items) items.push_back(key);
      break;
    case Kind::kIterator: {
      List& rest = value.iterator();
      items.assign(rest.items.begin() + static_cast<std::ptrdiff_t>(rest.next), rest.items.end());
      rest.next = rest.items.size();
      break;
    }
    default: throw Fault(std::string("'") + type_name(value) + "' object is not iterable");
  }
  step(items.size());
  bytes(items.size() * sizeof(Value));
  return items;
}

Value Interpreter::evaluate(const Expression& e, Scope& scope) {
  const Depth depth(*this);
  step();
  line_ = e.line;
  return evaluate_now(e, scope);
}

Value Interpreter::evaluate_now(const Expression& e, Scope& scope) {
  const auto part = [&](std::size_t i) { return evaluate(*e.parts[i], scope); };
  const auto all = [&] {
    std::vector<Value> values;
    for (const ExpressionPtr& each : e.parts) values.push_back(evaluate(*each, scope));
    return values;
  };
  switch (e.type) {
    case ExpressionType::kConstant: return e.value;
    case ExpressionType::kName: return name(e, scope);
    case ExpressionType::kList: return list(all());
    case ExpressionType::kTuple: return list(all(), Kind::kTuple);
    case ExpressionType::kDict: return dict(e, scope);
    case ExpressionType::kAttribute: return attribute(part(0), e.name);
    case ExpressionType::kItem: {
      const Value subject = part(0);
      return item(subject, part(1));
    }
    case ExpressionType::kSlice: return slice(e, scope);
    case ExpressionType::kCall: return call_expression(e, scope, nullptr);
    case ExpressionType::kFilter: return filtered(e, part(0), scope);
    case ExpressionType::kTest: {
      const Value subject = part(0);
      return Value::boolean(test(e.name, subject, arguments(e, scope)));
    }
    case ExpressionType::kNot: return Value::boolean(!truth(part(0)));
    case ExpressionType::kNegate: {
      const Value value = part(0);
      return value.is(Kind::kFloat) ? Value::real(-value.real())
                                    : binary("-", Value::integer(0), value);
    }
    case ExpressionType::kPlus: return binary("+", Value::integer(0), part(0));
    case ExpressionType::kBinary: {
      const Value left = part(0);
      return binary(e.name, left, part(1));
    }
    case ExpressionType::kConcat: {
      std::string joined;
      for (const ExpressionPtr& each : e.parts) joined += to_text(evaluate(*each, scope));
      return text(std::move(joined));
    }
    case ExpressionType::kCompare: return compare(e, scope);
    case ExpressionType::kAnd:
    case ExpressionType::kOr: {
      Value value;
      for (const ExpressionPtr& each : e.parts) {
        value = evaluate(*each, scope);
        if (truth(value) == (e.type == ExpressionType::kOr)) break;
      }
      return value;
    }
    case ExpressionType::kConditional:
      if (truth(part(0))) return part(1);
      return e.parts[2] ? part(2)
                        : Value::undefined(
                              "the inline if-expression evaluated to false and no else section was "
                              "defined");
  }
  return {};
}

Value Interpreter::name(const Expression& e, Scope& scope) {
  for (const Scope* at = &scope; at; at = at->outer) {
    step(1 + at->variables.size() / 8);
    for (const auto& [known, value] : at->variables)
      if (known == e.name) return value;
  }
  if (const Method global = find_global(e.name))
    return Value::function({.name = e.name, .method = global, .self = {}});
  return Value::undefined("'" + e.name + "' is undefined");
}

Value Interpreter::dict(const Expression& e, Scope& scope) {
  Dict made;
  for (std::size_t i = 0; i < e.parts.size(); i += 2) {
    Value key = evaluate(*e.parts[i], scope);
    step(i / 2);
    made.set(std::move(key), evaluate(*e.parts[i + 1], scope));
  }
  bytes(made.items.size() * 2 * sizeof(Value));
  return Value::dict(std::move(made));
}

Value Interpreter::attribute(const Value& value, const std::string& name) {
  if (value.is_undefined()) throw Fault(value.reason());
  if (value.is(Kind::kLoop)) {
    const Loop& loop = value.loop();
    const auto number = [](std::size_t n) { return Value::integer(static_cast<std::int64_t>(n)); };
    const std::size_t size = loop.items->size();
    if (name == "index") return number(loop.index + 1);
    if (name == "index0") return number(loop.index);
    if (name == "revindex") return number(size - loop.index);
    if (name == "revindex0") return number(size - loop.index - 1);
    if (name == "first") return Value::boolean(loop.index == 0);
    if (name == "last") return Value::boolean(loop.index + 1 == size);
    if (name == "length") return number(size);
    if (name == "depth") return number(1);
    if (name == "depth0") return number(0);
    if (name == "previtem")
      return loop.index > 0 ? (*loop.items)[loop.index - 1]
                            : Value::undefined("there is no previous item");
    if (name == "nextitem")
      return loop.index + 1 < size ? (*loop.items)[loop.index + 1]
                                   : Value::undefined("there is no next item");
  }
  if (const Method method = find_method(value.kind(), name))
    return Value::function({.name = name, .method = method, .self = value});
  if (value.is(Kind::kDict) || value.is(Kind::kNamespace)) {
    step(1 + value.dict().items.size() / 8);
    if (const Value* found = value.dict().find(name)) return *found;
  }
  return Value::undefined(std::string("'") + type_name(value) + " object' has no attribute '" +
                          name + "'");
}

Value Interpreter::item(const Value& value, const Value& key) {
  if (value.is_undefined()) throw Fault(value.reason());
  if (value.is(Kind::kDict)) {
    step(1 + value.dict().items.size() / 8);
    if (const Value* found = value.dict().find(key)) return *found;
  } else if ((value.is_sequence() || value.is_string()) && key.is_integral()) {
    const auto size = static_cast<std::int64_t>(value.is_string() ? length_of(value.text())
                                                                  : value.items().size());
    const std::int64_t index = key.integer() < 0 ? key.integer() + size : key.integer();
    if (index >= 0 && index < size) {
      if (!value.is_string()) return value.items()[static_cast<std::size_t>(index)];
      step(value.text().size() / 16);
      std::size_t end = offset_of(value.text(), static_cast<std::size_t>(index));
      const std::size_t begin = end;
      next_code(value.text(), end);
      return text(value.text().substr(begin, end - begin));
    }
    return Value::undefined(std::string(type_name(value)) + " index out of range");
  }
  if (key.is_string()) {
    // A key without an element may name a method, like `message["items"]` where the message has no
    // such key.
    if (value.is(Kind::kDict)) {
      const Method method = find_method(value.kind(), key.text());
      if (method) return Value::function({.name = key.text(), .method = method, .self = value});
    } else {
      return attribute(value, key.text());
    }
  }
  return Value::undefined(std::string("'") + type_name(value) + " object' has no element " +
                          (key.is_transient() ? "" : to_repr(key)));
}

std::vector<std::size_t> slice_indices(std::size_t length, const Value* start, const Value* stop,
                                       const Value* step) {
  const auto size = static_cast<std::int64_t>(length);
  const std::int64_t by = step ? integer_of(*step, "slice step") : 1;
  if (by == 0) throw Fault("slice step cannot be zero");
  const auto place = [&](const Value* value, std::int64_t fallback) {
    if (!value) return fallback;
    std::int64_t at = integer_of(*value, "slice index");
    if (at < 0)
      at = at < -size ? -1 : at + size;
    else if (at > size)
      at = size;
    // In backward slices -1 stands for the position before the first element, size - 1 for the
    // last.
    return by > 0 ? std::clamp<std::int64_t>(at, 0, size)
                  : std::clamp<std::int64_t>(at, -1, size - 1);
  };
  const std::int64_t from = place(start, by > 0 ? 0 : size - 1),
                     to = place(stop, by > 0 ? size : -1);
  std::vector<std::size_t> indices;
  for (std::int64_t at = from; by > 0 ? at < to : at > to;) {
    indices.push_back(static_cast<std::size_t>(at));
    if (by > 0 ? by > to - at : by < to - at) break;  // the next is past the end and might overflow
    at += by;
  }
  return indices;
}

Value Interpreter::slice(const Expression& e, Scope& scope) {
  const Value subject = evaluate(*e.parts[0], scope);
  Value bounds[3];
  const Value* given[3] = {};
  for (std::size_t i = 0; i < 3; ++i) {
    if (!e.parts[i + 1]) continue;
    bounds[i] = evaluate(*e.parts[i + 1], scope);
    if (!bounds[i].is_none()) given[i] = &bounds[i];
  }
  if (subject.is_undefined()) throw Fault(subject.reason());
  if (!subject.is_string() && !subject.is_sequence())
    throw Fault(std::string("'") + type_name(subject) + "' object is not subscriptable");
  const std::size_t length =
      subject.is_string() ? length_of(subject.text()) : subject.items().size();
  step(length / 4);
  const std::vector<std::size_t> indices = slice_indices(length, given[0], given[1], given[2]);
  if (subject.is_sequence()) {
    std::vector<Value> items;
    for (const std::size_t index : indices) items.push_back(subject.items()[index]);
    return list(std::move(items), subject.kind());
  }
  std::vector<std::size_t> offsets;  // byte offset of every code point
  for (std::size_t at = 0; at < subject.text().size(); next_code(subject.text(), at))
    offsets.push_back(at);
  offsets.push_back(subject.text().size());
  std::string part;
  for (const std::size_t index : indices)
    part += subject.text().substr(offsets[index], offsets[index + 1] - offsets[index]);
  return text(std::move(part));
}

Arguments Interpreter::arguments(const Expression& e, Scope& scope) {
  Arguments all;
  for (const ExpressionPtr& argument : e.arguments)
    all.positional.push_back(evaluate(*argument, scope));
  if (e.list_argument)
    for (Value& value : elements(evaluate(*e.list_argument, scope)))
      all.positional.push_back(std::move(value));
  for (const auto& [name, value] : e.named) all.named.emplace_back(name, evaluate(*value, scope));
  if (e.dict_argument) {
    const Value more = evaluate(*e.dict_argument, scope);
    if (!more.is(Kind::kDict)) throw Fault("argument after ** must be a mapping");
    for (const auto& [key, value] : more.dict().items) {
      if (!key.is_string()) throw Fault("keywords must be strings");
      all.named.emplace_back(key.text(), value);
    }
  }
  step(all.positional.size() + all.named.size());
  return all;
}

Value Interpreter::call_expression(const Expression& e, Scope& scope, const Value* caller) {
  const Value function = evaluate(*e.parts[0], scope);
  const Arguments given = arguments(e, scope);
  line_ = e.line;
  return call(function, given, caller);
}

bool Interpreter::contains(const Value& container, const Value& value) {
  if (container.is_string()) {
    if (!value.is_string())
      throw Fault(std::string("'in <string>' requires string as left operand, not ") +
                  type_name(value));
    step(container.text().size() / 16);
    return container.text().find(value.text()) != std::string::npos;
  }
  if (container.is(Kind::kDict)) {
    step(container.weight());
    return container.dict().find(value) != nullptr;
  }
  step(container.weight());
  const std::vector<Value> items = elements(container);
  return std::any_of(items.begin(), items.end(),
                     [&](const Value& each) { return equal(each, value); });
}

Value Interpreter::compare(const Expression& e, Scope& scope) {
  Value left = evaluate(*e.parts[0], scope);
  for (std::size_t i = 0; i < e.operators.size(); ++i) {
    Value right = evaluate(*e.parts[i + 1], scope);
    const std::string& sign = e.operators[i];
    bool holds = false;
    step(left.weight());
    if (sign == "==")
      holds = equal(left, right);
    else if (sign == "!=")
      holds = !equal(left, right);
    else if (sign == "<")
      holds = less(left, right);
    else if (sign == ">")
      holds = less(right, left);
    else if (sign == "<=")
      holds = less(left, right) || equal(left, right);
    else if (sign == ">=")
      holds = less(right, left) || equal(left, right);
    else
      holds = contains(right, left) == (sign == "in");
    if (!holds) return Value::boolean(false);
    left = std::move(right);
  }
  return Value::boolean(true);
}

Value Interpreter::filtered(const Expression& e, const Value& subject, Scope& scope) {
  const Arguments given = arguments(e, scope);
  line_ = e.line;
  return filter(e.name, subject, given);
}

Value Interpreter::filter_block(const Expression& e, const Value& subject, Scope& scope) {
  return filtered(e, e.parts[0] ? filter_block(*e.parts[0], subject, scope) : subject, scope);
}

Value Interpreter::filter(std::string_view name, const Value& self, const Arguments& given) {
  const Method method = find_filter(name);
  if (!method) throw Fault("there is no filter named '" + std::string(name.substr(0, 40)) + "'");
  return method(*this, self, given);
}

bool Interpreter::test(std::string_view name, const Value& self, const Arguments& given) {
  const Test function = find_test(name);
  if (!function) throw Fault("there is no test named '" + std::string(name.substr(0, 40)) + "'");
  return function(*this, self, given);
}

}  // namespace mulciber::jinja
