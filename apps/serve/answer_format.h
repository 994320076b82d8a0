// Answers of language models as OpenAI's interface writes them: whole, and in pieces.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/serve/answer_channel.h"
#include "text/tokenizer.h"

namespace mulciber::apps::serve {

/// A token with its probability, and the likeliest ones in its place.
struct TokenRecord {
  std::string bytes;  // its text; perhaps not a whole character
  float log_probability = 0;
  std::vector<std::pair<std::string, float>> likeliest;
};

/// Turns ids into the texts that they add to an answer.
class TokenTexts {
 public:
  explicit TokenTexts(std::shared_ptr<const Tokenizer> tokenizer)
      : tokenizer_(std::move(tokenizer)) {}
  /// The next token of the answer.
  TokenRecord next(const AnswerEvent& event);

 private:
  std::string text_behind(uint32_t id) const;
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::optional<int32_t> before_;
};

/// A call of a tool that the model asks for.
struct ToolCall {
  std::string id, name;
  std::string arguments;  // JSON
};

/// One of the answers, or a piece of it.
struct AnswerPart {
  uint32_t choice = 0;
  std::string text;
  size_t text_offset = 0;  // of a completion's piece: characters before it
  std::optional<std::vector<TokenRecord>> tokens;
  std::vector<ToolCall> calls;
  std::string finish_reason;  // empty: it goes on
};

struct Usage {
  size_t prompt_tokens = 0, answer_tokens = 0;
};

/// What all objects about one request have in common.
struct AnswerFormat {
  bool chat = false;
  std::string id, model;
  int64_t created = 0;

  /// The object of an answer that is not streamed.
  nlohmann::json whole(const std::vector<AnswerPart>& parts, const Usage& usage) const;
  /// A chunk. first: the first of its choice, which names the role. usage_follows: the last chunk
  /// will tell the usage.
  nlohmann::json chunk(const AnswerPart& part, bool first, bool usage_follows) const;
  nlohmann::json usage_chunk(const Usage& usage) const;
};

/// "stop", "length".
std::string finish_reason(GenerateEnd end);

}  // namespace mulciber::apps::serve
