// Answers of language models as OpenAI's interface writes them: whole, and in pieces.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/serve/engine/answer_channel.h"
#include "text/tokenizer.h"

namespace mulciber::apps::serve {

/// A token with its probability, and the likeliest ones in its place.
struct TokenRecord {
  std::string bytes;                     // its text; perhaps not a whole character
  std::optional<float> log_probability;  // none: nothing stands before it
  std::vector<std::pair<std::string, float>> likeliest;
};

/// Turns ids into the texts that they add to an answer.
class TokenTexts {
 public:
  explicit TokenTexts(std::shared_ptr<const Tokenizer> tokenizer)
      : tokenizer_(std::move(tokenizer)) {}
  /// The next token of the answer.
  TokenRecord next(const AnswerEvent& event);
  TokenRecord next(uint32_t id, std::optional<float> log_probability,
                   const std::vector<TokenProbability>& likeliest);

 private:
  std::string text_behind(uint32_t id) const;
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::optional<int32_t> before_;
};

/// A part of a call of a tool that the model asks for.
struct CallPiece {
  size_t index = 0;       // of the answer's calls
  std::string id, name;   // of the first piece
  std::string arguments;  // JSON, in pieces
};
/// Puts pieces together to whole calls.
void add_pieces(std::vector<CallPiece>& calls, const std::vector<CallPiece>& pieces);

/// One of the answers, or a piece of it.
struct AnswerPart {
  uint32_t choice = 0;
  std::string text;
  size_t text_offset = 0;  // of a completion's piece: characters before it
  std::optional<std::vector<TokenRecord>> tokens;
  std::vector<CallPiece> calls;
  std::string finish_reason;  // empty: it goes on
  /// What came of this choice before is void: it begins anew.
  bool again = false;
};

struct Usage {
  size_t prompt_tokens = 0, answer_tokens = 0;
  size_t cached_tokens = 0;  // of the prompts', computed for others that began alike
  size_t proposed_tokens = 0, accepted_tokens = 0;  // by speculative decoding
};

/// Tokens as chats and responses list them. At the end of a stream of bytes that is no whole
/// character, `token` has U+FFFD in its place.
nlohmann::json chat_probabilities(const std::vector<TokenRecord>& tokens);

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

 private:
  /// of_chat: what the object is called where it is a chat's.
  nlohmann::json object(const char* of_chat, nlohmann::json choices) const;
  /// But for what a chat says.
  nlohmann::json choice(const AnswerPart& part) const;
};

/// "stop", "length".
std::string finish_reason(GenerateEnd end);

}  // namespace mulciber::apps::serve
