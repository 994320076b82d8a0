// What a template can call, and how arguments come.
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

  /// One pointer for each name, null for what was not given. Throws Fault for too many, too few
  /// (the first `required` must be there) or unknown ones. what: for the message.
  std::vector<const Value*> bind(std::string_view what, std::size_t required,
                                 std::initializer_list<std::string_view> names) const;
};

/// A filter or method: `self` is what stands before the bar or the dot.
using Method = Value (*)(Interpreter& interpreter, const Value& self, const Arguments& arguments);
using Test = bool (*)(Interpreter& interpreter, const Value& self, const Arguments& arguments);

struct Function {
  std::string name;
  Method method = nullptr;  // of a method or a global function
  Value self;
  const Statement* macro = nullptr;  // or a macro, or the body of a call block,
  Scope* scope = nullptr;            // in the scope that it was written in
};

/// nullptr where there is no such name.
Method find_filter(std::string_view name);
Test find_test(std::string_view name);
Method find_method(Kind kind, std::string_view name);
Method find_global(std::string_view name);

/// The number of an argument. Throws Fault when it is none.
std::int64_t integer_of(const Value& value, std::string_view what);
/// `%` of a string and the filter `format`.
Value format_percent(Interpreter& interpreter, const std::string& format, const Value& values);

}  // namespace mulciber::jinja
