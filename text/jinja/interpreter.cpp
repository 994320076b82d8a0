#include "text/jinja/interpreter.h"

#include <algorithm>

namespace mulciber::jinja {

void Scope::set(std::string_view name, Value value) {
  for (auto& [known, old] : variables) {
    if (known == name) {
      old = std::move(value);
      return;
    }
  }
  variables.emplace_back(name, std::move(value));
}

Interpreter::Depth::Depth(Interpreter& owner) : interpreter(owner) {
  if (++interpreter.depth_ > interpreter.limits_.depth) {
    --interpreter.depth_;
    throw Fault("the template calls itself too deep");
  }
}

void Interpreter::step(std::size_t count) {
  steps_ += count;
  if (steps_ > limits_.steps)
    throw Fault("the template does not end: it took more than " + std::to_string(limits_.steps) +
                " steps");
}

void Interpreter::bytes(std::size_t count) {
  bytes_ += count;
  if (bytes_ > limits_.bytes)
    throw Fault("the template makes more than " + std::to_string(limits_.bytes) +
                " bytes of text and lists");
}

void Interpreter::print(const std::string& text) {
  bytes(text.size());
  *out_ += text;
}

std::string Interpreter::render(const Body& body, Scope& globals) {
  std::string out;
  out_ = &out;
  Scope top{&globals, {}};
  run(body, top);
  return out;
}

Interpreter::Flow Interpreter::run(const Body& body, Scope& scope) {
  const Depth depth(*this);
  for (const Statement& statement : body) {
    step();
    line_ = statement.line;
    if (const Flow flow = run(statement, scope); flow != Flow::kNormal) return flow;
  }
  return Flow::kNormal;
}

std::string Interpreter::captured(const Body& body, Scope& scope) {
  std::string text;
  std::string* const outer = std::exchange(out_, &text);
  Scope inner{&scope, {}};
  run(body, inner);
  out_ = outer;
  return text;
}

Interpreter::Flow Interpreter::run(const Statement& s, Scope& scope) {
  switch (s.type) {
    case StatementType::kText: print(s.text); break;
    case StatementType::kOutput: print(to_text(evaluate(*s.expression, scope))); break;
    case StatementType::kFor: return run_for(s, scope);
    case StatementType::kIf:
      for (const Branch& branch : s.branches)
        if (!branch.condition || truth(evaluate(*branch.condition, scope)))
          return run(branch.body, scope);
      break;
    case StatementType::kSet: assign(s.target, evaluate(*s.expression, scope), scope); break;
    case StatementType::kSetBlock: {
      Value value = text(captured(s.body, scope));
      if (s.expression) value = filter_block(*s.expression, value, scope);
      assign(s.target, value, scope);
      break;
    }
    case StatementType::kMacro:
      scope.set(s.text,
                Value::function({.name = s.text, .self = {}, .macro = &s, .scope = &scope}));
      break;
    case StatementType::kCall: run_call(s, scope); break;
    case StatementType::kFilterBlock:
      print(to_text(filter_block(*s.expression, text(captured(s.body, scope)), scope)));
      break;
    case StatementType::kWith: {
      Scope inner{&scope, {}};
      for (const Parameter& parameter : s.parameters)
        inner.set(parameter.name, evaluate(*parameter.value, scope));
      return run(s.body, inner);
    }
    case StatementType::kScope: print(captured(s.body, scope)); break;
    case StatementType::kBreak: return Flow::kBreak;
    case StatementType::kContinue: return Flow::kContinue;
  }
  return Flow::kNormal;
}

Interpreter::Flow Interpreter::run_for(const Statement& s, Scope& scope) {
  std::vector<Value> items = elements(evaluate(*s.expression, scope));
  if (s.condition) {
    std::vector<Value> kept;
    for (Value& item : items) {
      step();
      Scope inner{&scope, {}};
      assign(s.target, item, inner);
      if (truth(evaluate(*s.condition, inner))) kept.push_back(std::move(item));
    }
    items = std::move(kept);
  }
  if (items.empty()) {
    Scope inner{&scope, {}};
    return run(s.otherwise, inner);
  }
  Loop loop{&items, 0, {}};
  for (; loop.index < items.size(); ++loop.index) {
    step();
    Scope inner{&scope, {}};
    inner.variables.emplace_back("loop", Value::loop(&loop));
    assign(s.target, items[loop.index], inner);
    if (run(s.body, inner) == Flow::kBreak) break;
  }
  return Flow::kNormal;
}

void Interpreter::run_call(const Statement& s, Scope& scope) {
  const Value caller =
      Value::function({.name = "caller", .self = {}, .macro = &s, .scope = &scope});
  print(to_text(call_expression(*s.expression, scope, &caller)));
}

void Interpreter::assign(const Target& target, const Value& value, Scope& scope) {
  step();
  if (!target.parts.empty()) {
    const std::vector<Value> items = elements(value);
    if (items.size() != target.parts.size())
      throw Fault("cannot unpack " + std::to_string(items.size()) + " values into " +
                  std::to_string(target.parts.size()) + " names");
    for (std::size_t i = 0; i < items.size(); ++i) assign(target.parts[i], items[i], scope);
  } else if (target.attribute.empty()) {
    scope.set(target.name, value);
  } else {
    // A function or loop dies with its scope, and a namespace that contains itself would never be
    // printed to the end.
    if (value.is_transient())
      throw Fault("a namespace cannot hold a function, a loop or a namespace");
    Expression named;
    named.name = target.name;
    const Value space = name(named, scope);
    if (!space.is(Kind::kNamespace)) throw Fault("cannot assign attribute on non-namespace object");
    space.dict().set(Value::string(target.attribute), value);
  }
}

Value Interpreter::call(const Value& function, const Arguments& arguments, const Value* caller) {
  if (function.is_undefined()) throw Fault(function.reason());
  if (!function.is(Kind::kFunction))
    throw Fault(std::string("'") + type_name(function) + "' object is not callable");
  const Depth depth(*this);
  step();
  const Function& target = function.function();
  if (target.macro) return call_macro(target, arguments, caller);
  return target.method(*this, target.self, arguments);
}

Value Interpreter::call_macro(const Function& macro, const Arguments& arguments,
                              const Value* caller) {
  const Statement& s = *macro.macro;
  const auto refuse = [&](const std::string& problem) {
    throw Fault("macro '" + macro.name + "' " + problem);
  };
  Scope scope{macro.scope, {}};
  std::vector<Value> more;
  Dict named;
  for (std::size_t i = 0; i < arguments.positional.size(); ++i) {
    if (i < s.parameters.size())
      scope.set(s.parameters[i].name, arguments.positional[i]);
    else
      more.push_back(arguments.positional[i]);
  }
  for (const auto& [name, value] : arguments.named) {
    const auto parameter =
        std::find_if(s.parameters.begin(), s.parameters.end(),
                     [&name = name](const Parameter& p) { return p.name == name; });
    if (parameter == s.parameters.end())
      named.set(Value::string(name), value);
    else if (parameter <
             s.parameters.begin() + static_cast<std::ptrdiff_t>(
                                        std::min(arguments.positional.size(), s.parameters.size())))
      refuse("got two values for '" + name + "'");
    else
      scope.set(name, value);
  }
  if (!more.empty() && !s.takes_more)
    refuse("takes not more than " + std::to_string(s.parameters.size()) + " arguments");
  if (!named.items.empty() && !s.takes_named)
    refuse("takes no keyword argument '" + named.items[0].first.text() + "'");
  if (caller) scope.set("caller", *caller);
  if (s.takes_more) scope.set("varargs", list(std::move(more), Kind::kTuple));
  if (s.takes_named) scope.set("kwargs", Value::dict(std::move(named)));
  for (const Parameter& parameter : s.parameters) {
    const auto given = [&](const auto& variable) { return variable.first == parameter.name; };
    if (std::any_of(scope.variables.begin(), scope.variables.end(), given)) continue;
    scope.set(parameter.name, parameter.value ? evaluate(*parameter.value, scope)
                                              : Value::undefined("parameter '" + parameter.name +
                                                                 "' was not provided"));
  }
  const int line = line_;
  Value result = text(captured(s.body, scope));
  line_ = line;
  return result;
}

}  // namespace mulciber::jinja
