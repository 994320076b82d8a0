// Functions that a template can call, and their arguments.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/jinja/value.h"

namespace mulciber::jinja {

class Interpreter;
struct Scope;
struct Statement;

struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;

  /// Binds arguments to names: one pointer for each name, null for a missing argument. Throws Fault
  /// for too many, too few (the first `required` are mandatory) or unknown ones. what: for the
  /// message.
  std::vector<const Value*> bind(std::string_view what, std::size_t required,
                                 std::initializer_list<std::string_view> names) const;
};

/// A filter or method: `self` is the value before the bar or dot.
using Method = Value (*)(Interpreter& interpreter, const Value& self, const Arguments& arguments);
using Test = bool (*)(Interpreter& interpreter, const Value& self, const Arguments& arguments);

struct Function {
  std::string name;
  Method method = nullptr;  // for a method or a global function
  Value self;
  const Statement* macro = nullptr;  // or for a macro, or for the body of a call block,
  Scope* scope = nullptr;            // with the scope in which it was defined
};

/// nullptr where there is no such name.
Method find_filter(std::string_view name);
Test find_test(std::string_view name);
Method find_method(Kind kind, std::string_view name);
Method find_global(std::string_view name);

/// The integer value of an argument. Throws Fault when it is not an integer.
std::int64_t integer_of(const Value& value, std::string_view what);
/// `%` of a string and the filter `format`.
Value format_percent(Interpreter& interpreter, const std::string& format, const Value& values);

}  // namespace mulciber::jinja
