// Parses a template into its tree.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "text/jinja/lexer.h"
#include "text/jinja/syntax.h"

namespace mulciber::jinja {

/// Makes a vector of parts of an expression; pointers cannot be copied out of an initializer list.
template <typename... Parts>
std::vector<ExpressionPtr> list_of(Parts... parts) {
  std::vector<ExpressionPtr> all;
  (all.push_back(std::move(parts)), ...);
  return all;
}

/// Parses expressions; StatementParser parses statements. Grammar and precedence are Jinja's.
class ExpressionParser {
 public:
  explicit ExpressionParser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

 protected:
  const Token& now() const { return tokens_[at_]; }
  const Token& ahead() const { return tokens_[at_ + 1 < tokens_.size() ? at_ + 1 : at_]; }
  bool at_operator(std::string_view text) const {
    return now().type == TokenType::kOperator && now().text == text;
  }
  bool at_word(std::string_view text) const {
    return now().type == TokenType::kName && now().text == text;
  }
  void advance() { at_ += at_ + 1 < tokens_.size() ? 1 : 0; }
  bool take_operator(std::string_view text);
  bool take_word(std::string_view text);
  void expect_operator(std::string_view text);
  void expect_word(std::string_view text);
  void expect(TokenType type, std::string_view what);
  std::string expect_name();
  [[noreturn]] void fail(const std::string& problem) const;
  [[noreturn]] void fail_here(const std::string& wanted) const;

  ExpressionPtr expression();     // with `a if b else c`
  ExpressionPtr or_expression();  // without it
  /// One expression, or several with commas between as a tuple.
  ExpressionPtr tuple(bool conditional = true);
  /// Reads the filters after a bar; subject: may be null.
  ExpressionPtr filters(ExpressionPtr subject, bool bar_taken);

  /// Counts the recursion depth of the parser; statements count too.
  struct Level {
    explicit Level(ExpressionParser& parser);
    ~Level() { --parser.level_; }
    ExpressionParser& parser;
  };

  bool saw_varargs_ = false,
       saw_kwargs_ = false;  // the name lets a macro take more than its parameters

 private:
  ExpressionPtr make(ExpressionType type, int line, std::vector<ExpressionPtr> parts = {}) const;
  /// Computes depths again after parts or arguments were set.
  ExpressionPtr measured(ExpressionPtr node) const;
  template <typename Next>
  ExpressionPtr chain(ExpressionType type, std::string_view word, Next&& next);
  ExpressionPtr and_expression();
  ExpressionPtr not_expression();
  ExpressionPtr comparison();
  ExpressionPtr sum();
  ExpressionPtr concatenation();
  ExpressionPtr product();
  ExpressionPtr power();
  ExpressionPtr unary(bool with_filters);
  ExpressionPtr primary();
  ExpressionPtr number();
  ExpressionPtr in_parentheses();
  ExpressionPtr list();
  ExpressionPtr dict();
  ExpressionPtr postfix(ExpressionPtr node);
  ExpressionPtr subscript(ExpressionPtr node);
  ExpressionPtr test(ExpressionPtr subject);
  void arguments(Expression& call);
  bool at_tuple_end() const;

  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  int level_ = 0;
};

/// Throws SyntaxFault.
Body parse_template(std::string_view source);

}  // namespace mulciber::jinja
