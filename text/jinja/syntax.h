// The tree of a parsed template.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "text/jinja/value.h"

namespace mulciber::jinja {

struct Expression;
using ExpressionPtr = std::unique_ptr<Expression>;

enum class ExpressionType {
  kConstant,
  kName,
  kList,       // parts: elements
  kTuple,      // parts: elements
  kDict,       // parts: key, value, key, value ...
  kAttribute,  // parts[0].name
  kItem,       // parts[0][parts[1]]
  kSlice,      // parts[0][parts[1]:parts[2]:parts[3]], null for missing parts
  kCall,       // parts[0](...)
  kFilter,     // parts[0] | name(...); parts[0] is null for the text of a block
  kTest,       // parts[0] is name(...)
  kNot,
  kNegate,
  kPlus,
  kBinary,   // name: the operator
  kConcat,   // parts, as text, one after another
  kCompare,  // parts[0] operators[0] parts[1] operators[1] parts[2] ...
  kAnd,
  kOr,
  kConditional,  // parts: condition, then, else (or null)
};

struct Expression {
  ExpressionType type = ExpressionType::kConstant;
  int line = 0;
  int depth = 1;  // depth of the tree from here
  std::string name;
  Value value;
  std::vector<ExpressionPtr> parts;
  std::vector<std::string> operators;
  // Arguments of a call, filter or test, without its subject.
  std::vector<ExpressionPtr> arguments;
  std::vector<std::pair<std::string, ExpressionPtr>> named;
  ExpressionPtr list_argument, dict_argument;  // *args, **kwargs
};

struct Statement;
using Body = std::vector<Statement>;

enum class StatementType {
  kText,         // text
  kOutput,       // expression
  kFor,          // target, expression, condition, body, otherwise
  kIf,           // branches (a null condition is the else)
  kSet,          // target = expression
  kSetBlock,     // target = body, after the filters of `expression`, if any
  kMacro,        // name, parameters, body
  kCall,         // expression is the call; parameters and body are the caller's
  kFilterBlock,  // expression, body
  kWith,         // parameters are name and value, body
  kScope,        // only a body: {% generation %}
  kBreak,
  kContinue,
};

/// The target of an assignment: a name, an attribute of a namespace, or several names.
struct Target {
  std::string name, attribute;
  std::vector<Target> parts;
};

struct Parameter {
  std::string name;
  ExpressionPtr value;  // the default, or null
};

struct Branch {
  ExpressionPtr condition;
  Body body;
};

struct Statement {
  StatementType type = StatementType::kText;
  int line = 0;
  std::string text;  // or a macro's name
  Target target;
  ExpressionPtr expression, condition;
  Body body, otherwise;
  std::vector<Branch> branches;
  std::vector<Parameter> parameters;
  bool takes_more = false, takes_named = false;  // a macro that reads `varargs`, `kwargs`
};

}  // namespace mulciber::jinja
