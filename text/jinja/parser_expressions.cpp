// Parses operators of expressions, from the weakest to the strongest.
#include <algorithm>
#include <array>

#include "text/jinja/parser.h"

namespace mulciber::jinja {
namespace {

// Deeper than any template that people write; evaluation and destruction recurse to the tree's
// depth.
constexpr int kMostDepth = 100;
// Bound of the parser's own recursion: a parenthesized expression counts four times.
constexpr int kMostLevels = 200;

}  // namespace

void ExpressionParser::fail(const std::string& problem) const {
  throw SyntaxFault{now().line, problem};
}

void ExpressionParser::fail_here(const std::string& wanted) const {
  const Token& token = now();
  std::string found = token.text;
  switch (token.type) {
    case TokenType::kEnd: found = "the end of the template"; break;
    case TokenType::kData: found = "text"; break;
    case TokenType::kOutputBegin: found = "{{"; break;
    case TokenType::kOutputEnd: found = "}}"; break;
    case TokenType::kBlockBegin: found = "{%"; break;
    case TokenType::kBlockEnd: found = "%}"; break;
    default: found = "'" + found + "'";
  }
  fail("expected " + wanted + ", found " + found);
}

bool ExpressionParser::take_operator(std::string_view text) {
  if (!at_operator(text)) return false;
  advance();
  return true;
}
bool ExpressionParser::take_word(std::string_view text) {
  if (!at_word(text)) return false;
  advance();
  return true;
}
void ExpressionParser::expect_operator(std::string_view text) {
  if (!take_operator(text)) fail_here("'" + std::string(text) + "'");
}
void ExpressionParser::expect_word(std::string_view text) {
  if (!take_word(text)) fail_here("'" + std::string(text) + "'");
}
void ExpressionParser::expect(TokenType type, std::string_view what) {
  if (now().type != type) fail_here(std::string(what));
  advance();
}
std::string ExpressionParser::expect_name() {
  if (now().type != TokenType::kName) fail_here("a name");
  std::string name = now().text;
  advance();
  return name;
}

ExpressionParser::Level::Level(ExpressionParser& owner) : parser(owner) {
  if (++parser.level_ > kMostLevels) {
    --parser.level_;
    parser.fail("the template nests too deep");
  }
}

ExpressionPtr ExpressionParser::make(ExpressionType type, int line,
                                     std::vector<ExpressionPtr> parts) const {
  auto node = std::make_unique<Expression>();
  node->type = type;
  node->line = line;
  node->parts = std::move(parts);
  return measured(std::move(node));
}

ExpressionPtr ExpressionParser::measured(ExpressionPtr node) const {
  int deepest = 0;
  const auto look = [&](const ExpressionPtr& part) {
    deepest = std::max(deepest, part ? part->depth : 0);
  };
  for (const ExpressionPtr& part : node->parts) look(part);
  for (const ExpressionPtr& argument : node->arguments) look(argument);
  for (const auto& [name, argument] : node->named) look(argument);
  look(node->list_argument);
  look(node->dict_argument);
  node->depth = deepest + 1;
  if (node->depth > kMostDepth)
    fail("an expression nests deeper than " + std::to_string(kMostDepth) + " levels");
  return node;
}

ExpressionPtr ExpressionParser::expression() {
  const Level level(*this);
  ExpressionPtr node = or_expression();
  while (at_word("if")) {
    const int line = now().line;
    advance();
    ExpressionPtr condition = or_expression();
    ExpressionPtr otherwise = take_word("else") ? expression() : nullptr;
    node = make(ExpressionType::kConditional, line,
                list_of(std::move(condition), std::move(node), std::move(otherwise)));
  }
  return node;
}

template <typename Next>
ExpressionPtr ExpressionParser::chain(ExpressionType type, std::string_view word, Next&& next) {
  ExpressionPtr node = next();
  if (!at_word(word)) return node;
  const int line = now().line;
  std::vector<ExpressionPtr> parts = list_of(std::move(node));
  while (take_word(word)) parts.push_back(next());
  return make(type, line, std::move(parts));
}

ExpressionPtr ExpressionParser::or_expression() {
  return chain(ExpressionType::kOr, "or", [this] { return and_expression(); });
}
ExpressionPtr ExpressionParser::and_expression() {
  return chain(ExpressionType::kAnd, "and", [this] { return not_expression(); });
}

ExpressionPtr ExpressionParser::not_expression() {
  const Level level(*this);
  const int line = now().line;
  if (take_word("not")) return make(ExpressionType::kNot, line, list_of(not_expression()));
  return comparison();
}

ExpressionPtr ExpressionParser::comparison() {
  constexpr std::array<std::string_view, 6> kSigns = {"==", "!=", "<", "<=", ">", ">="};
  const int line = now().line;
  std::vector<ExpressionPtr> parts = list_of(sum());
  std::vector<std::string> operators;
  while (true) {
    if (now().type == TokenType::kOperator &&
        std::find(kSigns.begin(), kSigns.end(), now().text) != kSigns.end()) {
      operators.push_back(now().text);
      advance();
    } else if (at_word("not") && ahead().type == TokenType::kName && ahead().text == "in") {
      advance();
      advance();
      operators.push_back("not in");
    } else if (take_word("in")) {
      operators.push_back("in");
    } else {
      break;
    }
    parts.push_back(sum());
  }
  if (operators.empty()) return std::move(parts[0]);
  ExpressionPtr node = make(ExpressionType::kCompare, line, std::move(parts));
  node->operators = std::move(operators);
  return node;
}

ExpressionPtr ExpressionParser::sum() {
  ExpressionPtr node = concatenation();
  while (at_operator("+") || at_operator("-")) {
    const Token sign = now();
    advance();
    node = make(ExpressionType::kBinary, sign.line, list_of(std::move(node), concatenation()));
    node->name = sign.text;
  }
  return node;
}

ExpressionPtr ExpressionParser::concatenation() {
  const int line = now().line;
  std::vector<ExpressionPtr> parts = list_of(product());
  while (take_operator("~")) parts.push_back(product());
  if (parts.size() == 1) return std::move(parts[0]);
  return make(ExpressionType::kConcat, line, std::move(parts));
}

ExpressionPtr ExpressionParser::product() {
  ExpressionPtr node = power();
  while (at_operator("*") || at_operator("/") || at_operator("//") || at_operator("%")) {
    const Token sign = now();
    advance();
    node = make(ExpressionType::kBinary, sign.line, list_of(std::move(node), power()));
    node->name = sign.text;
  }
  return node;
}

ExpressionPtr ExpressionParser::power() {
  ExpressionPtr node = unary(true);
  while (at_operator("**")) {
    const int line = now().line;
    advance();
    node = make(ExpressionType::kBinary, line, list_of(std::move(node), unary(true)));
    node->name = "**";
  }
  return node;
}

ExpressionPtr ExpressionParser::unary(bool with_filters) {
  const Level level(*this);
  const int line = now().line;
  ExpressionPtr node;
  if (take_operator("-"))
    node = make(ExpressionType::kNegate, line, list_of(unary(false)));
  else if (take_operator("+"))
    node = make(ExpressionType::kPlus, line, list_of(unary(false)));
  else
    node = primary();
  node = postfix(std::move(node));
  while (with_filters) {
    if (at_operator("|"))
      node = filters(std::move(node), false);
    else if (at_word("is"))
      node = test(std::move(node));
    else if (at_operator("("))
      node = postfix(std::move(node));
    else
      break;
  }
  return node;
}

}  // namespace mulciber::jinja
