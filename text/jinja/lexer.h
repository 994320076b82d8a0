// Cuts a template's text into tokens.
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

/// The last token is of type kEnd. White space is treated as Jinja does with trim_blocks and
/// lstrip_blocks, without the template's last newline: the environment of Hugging Face
/// transformers. Throws SyntaxFault for text that is no template.
std::vector<Token> tokenize(std::string_view source);

/// A Fault at a known line.
struct SyntaxFault {
  int line;
  std::string problem;
};

}  // namespace mulciber::jinja
