#include "text/jinja/parser.h"

#include <algorithm>
#include <utility>

namespace mulciber::jinja {
namespace {

class StatementParser : public ExpressionParser {
 public:
  using ExpressionParser::ExpressionParser;

  Body run() {
    Body body = statements({});
    return body;
  }

 private:
  using Words = std::vector<std::string_view>;

  /// Reads statements up to a block that begins with one of `ends` (its `{%` is consumed, the word
  /// is not), or without `ends` to the end of the template.
  Body statements(const Words& ends) {
    const Level level(*this);
    Body body;
    while (true) {
      const int line = now().line;
      Statement statement;
      statement.line = line;
      if (now().type == TokenType::kEnd) {
        if (!ends.empty())
          fail("the template ends where '" + std::string(ends.back()) + "' was expected");
        return body;
      }
      if (now().type == TokenType::kData) {
        statement.type = StatementType::kText;
        statement.text = now().text;
        advance();
      } else if (now().type == TokenType::kOutputBegin) {
        advance();
        statement.type = StatementType::kOutput;
        statement.expression = tuple();
        expect(TokenType::kOutputEnd, "'}}'");
      } else {
        expect(TokenType::kBlockBegin, "a statement");
        if (std::any_of(ends.begin(), ends.end(),
                        [&](std::string_view end) { return at_word(end); }))
          return body;
        block(statement);
        expect(TokenType::kBlockEnd, "'%}'");
      }
      body.push_back(std::move(statement));
    }
  }

  /// Reads the body of a block: after the `%}` of its head, through its end word.
  Body body_until(std::string_view end) {
    take_operator(":");
    expect(TokenType::kBlockEnd, "'%}'");
    Body body = statements({end});
    advance();
    return body;
  }

  void block(Statement& s) {
    if (now().type != TokenType::kName) fail_here("a statement");
    const std::string word = now().text;
    if (word == "for") return for_block(s);
    if (word == "if") return if_block(s);
    if (word == "set") return set(s);
    if (word == "macro") return macro(s);
    if (word == "call") return call(s);
    if (word == "filter") return filter(s);
    if (word == "with") return with(s);
    if (word == "generation") return generation(s);
    if (word == "break" || word == "continue") {
      if (loops_ == 0) fail("'" + word + "' outside of a loop");
      s.type = word == "break" ? StatementType::kBreak : StatementType::kContinue;
      return advance();
    }
    if (word == "print") {
      advance();
      s.type = StatementType::kOutput;
      s.expression = expression();
      return;
    }
    fail("the statement '" + word.substr(0, 40) + "' is not supported");
  }

  Target simple_target(bool attributes) {
    if (take_operator("(")) {
      const Level level(*this);
      Target inner = target(attributes);
      expect_operator(")");
      return inner;
    }
    Target result;
    result.name = expect_name();
    for (const std::string_view constant : {"true", "false", "none", "True", "False", "None"})
      if (result.name == constant) fail("'" + result.name + "' cannot be assigned to");
    if (attributes && take_operator(".")) result.attribute = expect_name();
    return result;
  }

  Target target(bool attributes) {
    Target first = simple_target(attributes);
    if (!at_operator(",")) return first;
    Target all;
    all.parts.push_back(std::move(first));
    while (take_operator(",") && (now().type == TokenType::kName || at_operator("("))) {
      if (at_word("in")) break;
      all.parts.push_back(simple_target(attributes));
    }
    return all;
  }

  void for_block(Statement& s) {
    s.type = StatementType::kFor;
    advance();
    s.target = target(false);
    expect_word("in");
    s.expression = tuple(false);
    if (take_word("if")) s.condition = expression();
    if (at_word("recursive")) fail("recursive loops are not supported");
    take_operator(":");
    expect(TokenType::kBlockEnd, "'%}'");
    ++loops_;
    s.body = statements({"else", "endfor"});
    --loops_;
    if (take_word("else"))
      s.otherwise = body_until("endfor");
    else
      advance();
  }

  void if_block(Statement& s) {
    s.type = StatementType::kIf;
    advance();
    while (true) {
      Branch branch;
      branch.condition = tuple(false);
      take_operator(":");
      expect(TokenType::kBlockEnd, "'%}'");
      branch.body = statements({"elif", "else", "endif"});
      s.branches.push_back(std::move(branch));
      if (!take_word("elif")) break;
    }
    if (take_word("else"))
      s.branches.push_back({nullptr, body_until("endif")});
    else
      advance();
  }

  void set(Statement& s) {
    advance();
    s.target = target(true);
    if (take_operator("=")) {
      s.type = StatementType::kSet;
      s.expression = tuple();
      return;
    }
    s.type = StatementType::kSetBlock;
    if (at_operator("|")) s.expression = filters(nullptr, false);
    s.body = body_until("endset");
  }

  void parameters(Statement& s) {
    expect_operator("(");
    while (!at_operator(")")) {
      Parameter parameter{expect_name(), nullptr};
      if (take_operator("="))
        parameter.value = expression();
      else if (!s.parameters.empty() && s.parameters.back().value)
        fail("a parameter without a default follows one with a default");
      s.parameters.push_back(std::move(parameter));
      if (!take_operator(",")) break;
    }
    expect_operator(")");
  }

  /// Reads the body of a macro or call block, from which outer loops cannot be left.
  void macro_body(Statement& s, std::string_view end) {
    const int outer = std::exchange(loops_, 0);
    const bool outer_varargs = std::exchange(saw_varargs_, false),
               outer_kwargs = std::exchange(saw_kwargs_, false);
    s.body = body_until(end);
    s.takes_more = std::exchange(saw_varargs_, outer_varargs);
    s.takes_named = std::exchange(saw_kwargs_, outer_kwargs);
    loops_ = outer;
  }

  void macro(Statement& s) {
    s.type = StatementType::kMacro;
    advance();
    s.text = expect_name();
    parameters(s);
    macro_body(s, "endmacro");
  }

  void call(Statement& s) {
    s.type = StatementType::kCall;
    advance();
    if (at_operator("(")) parameters(s);
    s.text = "caller";
    s.expression = expression();
    if (s.expression->type != ExpressionType::kCall) fail("expected a call of a macro");
    macro_body(s, "endcall");
  }

  void filter(Statement& s) {
    s.type = StatementType::kFilterBlock;
    advance();
    s.expression = filters(nullptr, true);
    s.body = body_until("endfilter");
  }

  void with(Statement& s) {
    s.type = StatementType::kWith;
    advance();
    while (now().type != TokenType::kBlockEnd) {
      if (!s.parameters.empty()) expect_operator(",");
      std::string name = expect_name();
      expect_operator("=");
      s.parameters.push_back({std::move(name), expression()});
    }
    s.body = body_until("endwith");
  }

  void generation(Statement& s) {
    s.type = StatementType::kScope;
    advance();
    macro_body(s, "endgeneration");
  }

  int loops_ = 0;
};

}  // namespace

Body parse_template(std::string_view source) { return StatementParser(tokenize(source)).run(); }

}  // namespace mulciber::jinja
