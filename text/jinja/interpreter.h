// Renders a parsed template.
#pragma once

#include <ctime>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/jinja/function.h"
#include "text/jinja/syntax.h"

namespace mulciber::jinja {

/// Variables of a block of the template. `set` writes into the innermost scope, like in Jinja.
struct Scope {
  Scope* outer = nullptr;
  std::vector<std::pair<std::string, Value>> variables;
  void set(std::string_view name, Value value);
};

/// The state of `loop` in a for block.
struct Loop {
  const std::vector<Value>* items;
  std::size_t index = 0;
  std::optional<std::vector<Value>> last_changed;
};

class Interpreter {
 public:
  /// now: the time for strftime_now; the current local time where it is not given.
  Interpreter(const Limits& limits, const std::optional<std::tm>& now)
      : limits_(limits), now_(now) {}

  /// Throws Fault; line() gives the line.
  std::string render(const Body& body, Scope& globals);
  int line() const { return line_; }

  // For filters, tests and functions: these count against the limits.
  void step(std::size_t count = 1);
  Value text(std::string text);
  Value list(std::vector<Value> items, Kind kind = Kind::kList);
  /// Counts bytes before a large value is made.
  void bytes(std::size_t count);
  /// The elements over which a for loop would run; consumes the rest of an iterator. Throws Fault
  /// for a value without elements.
  std::vector<Value> elements(const Value& value);
  std::string to_text(const Value& value);
  /// value[key] and value.name; undefined where it does not exist.
  Value item(const Value& value, const Value& key);
  Value attribute(const Value& value, const std::string& name);
  bool contains(const Value& container, const Value& value);
  Value filter(std::string_view name, const Value& self, const Arguments& arguments);
  bool test(std::string_view name, const Value& self, const Arguments& arguments);
  Value binary(const std::string& sign, const Value& a, const Value& b);
  std::tm now() const;
  std::size_t bytes_left() const { return limits_.bytes - bytes_; }

 private:
  enum class Flow { kNormal, kBreak, kContinue };
  /// Counts nested evaluation.
  struct Depth {
    explicit Depth(Interpreter& interpreter);
    ~Depth() { --interpreter.depth_; }
    Interpreter& interpreter;
  };

  void print(const std::string& text);

  Flow run(const Body& body, Scope& scope);
  Flow run(const Statement& statement, Scope& scope);
  Flow run_for(const Statement& statement, Scope& scope);
  /// Renders a body to a text, in a scope of its own.
  std::string captured(const Body& body, Scope& scope);
  void run_call(const Statement& statement, Scope& scope);
  void assign(const Target& target, const Value& value, Scope& scope);

  Value evaluate(const Expression& e, Scope& scope);
  Value evaluate_now(const Expression& e, Scope& scope);
  Value name(const Expression& e, Scope& scope);
  Value dict(const Expression& e, Scope& scope);
  Value slice(const Expression& e, Scope& scope);
  Value call_expression(const Expression& e, Scope& scope, const Value* caller);
  Value compare(const Expression& e, Scope& scope);
  Value filtered(const Expression& e, const Value& subject, Scope& scope);
  /// Applies a block's chain of filters; the innermost one has no subject.
  Value filter_block(const Expression& e, const Value& subject, Scope& scope);
  Arguments arguments(const Expression& e, Scope& scope);
  Value call(const Value& function, const Arguments& arguments, const Value* caller);
  Value call_macro(const Function& macro, const Arguments& arguments, const Value* caller);

  const Limits& limits_;
  const std::optional<std::tm>& now_;
  std::size_t steps_ = 0, bytes_ = 0;
  int depth_ = 0, line_ = 1;
  std::string* out_ = nullptr;
};

/// The indices that Python's a[start:stop:step] takes of `length` elements. A null pointer stands
/// for a missing argument.
std::vector<std::size_t> slice_indices(std::size_t length, const Value* start, const Value* stop,
                                       const Value* step);

}  // namespace mulciber::jinja
