// Parses operands: names, literals, lists, and their suffixes (attributes, subscripts, calls,
// filters, tests).
#include <charconv>

#include "text/jinja/parser.h"

namespace mulciber::jinja {

ExpressionPtr ExpressionParser::primary() {
  const Token token = now();
  if (token.type == TokenType::kName) {
    advance();
    ExpressionPtr node = make(ExpressionType::kConstant, token.line);
    if (token.text == "true" || token.text == "True")
      node->value = Value::boolean(true);
    else if (token.text == "false" || token.text == "False")
      node->value = Value::boolean(false);
    else if (token.text == "none" || token.text == "None")
      node->value = Value::none();
    else
      node->type = ExpressionType::kName, node->name = token.text;
    saw_varargs_ |= token.text == "varargs";
    saw_kwargs_ |= token.text == "kwargs";
    return node;
  }
  if (token.type == TokenType::kString) {
    std::string text;
    for (; now().type == TokenType::kString; advance()) text += now().text;
    ExpressionPtr node = make(ExpressionType::kConstant, token.line);
    node->value = Value::string(std::move(text));
    return node;
  }
  if (token.type == TokenType::kInteger || token.type == TokenType::kFloat) return number();
  if (at_operator("(")) return in_parentheses();
  if (at_operator("[")) return list();
  if (at_operator("{")) return dict();
  fail_here("an expression");
}

ExpressionPtr ExpressionParser::number() {
  const Token token = now();
  ExpressionPtr node = make(ExpressionType::kConstant, token.line);
  const char *begin = token.text.data(), *end = begin + token.text.size();
  if (token.type == TokenType::kInteger) {
    std::int64_t value = 0;
    if (std::from_chars(begin, end, value).ec != std::errc())
      fail("the number " + token.text + " is too large");
    node->value = Value::integer(value);
  } else {
    double value = 0;
    if (std::from_chars(begin, end, value).ec != std::errc())
      fail("the number " + token.text + " is out of range");
    node->value = Value::real(value);
  }
  advance();
  return node;
}

bool ExpressionParser::at_tuple_end() const {
  return now().type == TokenType::kOutputEnd || now().type == TokenType::kBlockEnd ||
         at_operator(")");
}

ExpressionPtr ExpressionParser::tuple(bool conditional) {
  const int line = now().line;
  std::vector<ExpressionPtr> parts;
  bool is_tuple = false;
  while (true) {
    if (at_tuple_end()) break;
    parts.push_back(conditional ? expression() : or_expression());
    if (!take_operator(",")) break;
    is_tuple = true;
  }
  if (parts.empty()) fail_here("an expression");
  if (!is_tuple) return std::move(parts[0]);
  return make(ExpressionType::kTuple, line, std::move(parts));
}

ExpressionPtr ExpressionParser::in_parentheses() {
  const Level level(*this);
  const int line = now().line;
  expect_operator("(");
  if (take_operator(")")) return make(ExpressionType::kTuple, line);
  ExpressionPtr node = tuple();
  expect_operator(")");
  return node;
}

ExpressionPtr ExpressionParser::list() {
  const int line = now().line;
  expect_operator("[");
  std::vector<ExpressionPtr> parts;
  while (!at_operator("]")) {
    parts.push_back(expression());
    if (!take_operator(",")) break;
  }
  expect_operator("]");
  return make(ExpressionType::kList, line, std::move(parts));
}

ExpressionPtr ExpressionParser::dict() {
  const int line = now().line;
  expect_operator("{");
  std::vector<ExpressionPtr> parts;
  while (!at_operator("}")) {
    parts.push_back(expression());
    expect_operator(":");
    parts.push_back(expression());
    if (!take_operator(",")) break;
  }
  expect_operator("}");
  return make(ExpressionType::kDict, line, std::move(parts));
}

ExpressionPtr ExpressionParser::postfix(ExpressionPtr node) {
  while (true) {
    const int line = now().line;
    if (take_operator(".")) {
      if (now().type == TokenType::kInteger) {
        node = make(ExpressionType::kItem, line, list_of(std::move(node), number()));
      } else {
        node = make(ExpressionType::kAttribute, line, list_of(std::move(node)));
        node->name = expect_name();
      }
    } else if (at_operator("[")) {
      node = subscript(std::move(node));
    } else if (at_operator("(")) {
      node = make(ExpressionType::kCall, line, list_of(std::move(node)));
      arguments(*node);
      node = measured(std::move(node));
    } else {
      return node;
    }
  }
}

ExpressionPtr ExpressionParser::subscript(ExpressionPtr node) {
  const int line = now().line;
  expect_operator("[");
  ExpressionPtr first = at_operator(":") ? nullptr : expression();
  if (take_operator("]"))
    return make(ExpressionType::kItem, line, list_of(std::move(node), std::move(first)));
  expect_operator(":");
  ExpressionPtr stop, step;
  if (!at_operator(":") && !at_operator("]")) stop = expression();
  if (take_operator(":") && !at_operator("]")) step = expression();
  expect_operator("]");
  return make(ExpressionType::kSlice, line,
              list_of(std::move(node), std::move(first), std::move(stop), std::move(step)));
}

void ExpressionParser::arguments(Expression& call) {
  expect_operator("(");
  while (!at_operator(")")) {
    if (take_operator("**")) {
      if (call.dict_argument) fail("two ** in one call");
      call.dict_argument = expression();
    } else if (take_operator("*")) {
      if (call.list_argument || call.dict_argument) fail("two * in one call");
      call.list_argument = expression();
    } else if (now().type == TokenType::kName && ahead().type == TokenType::kOperator &&
               ahead().text == "=") {
      std::string name = expect_name();
      advance();
      call.named.emplace_back(std::move(name), expression());
    } else {
      if (!call.named.empty() || call.list_argument || call.dict_argument)
        fail("an argument without a name follows one with a name");
      call.arguments.push_back(expression());
    }
    if (!take_operator(",")) break;
  }
  expect_operator(")");
}

ExpressionPtr ExpressionParser::filters(ExpressionPtr subject, bool bar_taken) {
  while (bar_taken || take_operator("|")) {
    bar_taken = false;
    ExpressionPtr node = make(ExpressionType::kFilter, now().line, list_of(std::move(subject)));
    node->name = expect_name();
    if (at_operator("(")) arguments(*node);
    subject = measured(std::move(node));
  }
  return subject;
}

ExpressionPtr ExpressionParser::test(ExpressionPtr subject) {
  const int line = now().line;
  expect_word("is");
  const bool negated = take_word("not");
  ExpressionPtr node = make(ExpressionType::kTest, line, list_of(std::move(subject)));
  node->name = expect_name();
  const Token& next = now();
  const bool literal = next.type == TokenType::kName || next.type == TokenType::kString ||
                       next.type == TokenType::kInteger || next.type == TokenType::kFloat ||
                       at_operator("[") || at_operator("{");
  if (at_operator("(")) {
    arguments(*node);
  } else if (literal && !at_word("else") && !at_word("or") && !at_word("and")) {
    if (at_word("is")) fail("two tests with 'is' in a row");
    const Level level(*this);
    node->arguments.push_back(postfix(primary()));
  }
  node = measured(std::move(node));
  if (negated) node = make(ExpressionType::kNot, line, list_of(std::move(node)));
  return node;
}

}  // namespace mulciber::jinja
