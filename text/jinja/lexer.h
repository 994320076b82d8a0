// Splits a template's text into tokens.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mulciber::jinja {

enum class TokenType {
  kData,
  kOutputBegin,
  kOutputEnd,
  kBlockBegin,
  kBlockEnd,
  kName,
  kString,
  kInteger,
  kFloat,
  kOperator,
  kEnd
};

struct Token {
  TokenType type = TokenType::kEnd;
  std::string text;  // data, a name, a string without quotes and escapes, digits, or an operator
  int line = 1;
};

/// Returns the tokens; the last one has type kEnd. White space is treated like in Jinja with
/// trim_blocks and lstrip_blocks, and the template's last newline is removed: the environment of
/// Hugging Face transformers. Throws SyntaxFault for a text that is not a template.
std::vector<Token> tokenize(std::string_view source);

/// A Fault at a known line.
struct SyntaxFault {
  int line;
  std::string problem;
};

}  // namespace mulciber::jinja
