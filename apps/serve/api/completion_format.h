// Writes completions of language models in the format of OpenAI's API: whole, and in pieces.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/serve/engine/completion_channel.h"
#include "text/tokenizer.h"

namespace mulciber::apps::serve {

/// A token with its log probability, and the likeliest tokens at its position.
struct TokenRecord {
  std::string bytes;                     // its text, which may end within a character
  std::optional<float> log_probability;  // none: no token stands before it
  std::vector<std::pair<std::string, float>> likeliest;
};

/// Turns ids into the texts that they add to a completion.
class TokenTexts {
 public:
  explicit TokenTexts(std::shared_ptr<const Tokenizer> tokenizer)
      : tokenizer_(std::move(tokenizer)) {}
  /// The next token of the completion.
  TokenRecord next(const CompletionEvent& event);
  TokenRecord next(uint32_t id, std::optional<float> log_probability,
                   const std::vector<TokenProbability>& likeliest);

 private:
  std::string text_behind(uint32_t id) const;
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::optional<int32_t> before_;
};

/// A tool call of the model, or a piece of one.
struct CallPiece {
  size_t index = 0;       // number of the call in its completion
  std::string id, name;   // set in the first piece
  std::string arguments;  // JSON, in pieces
};
/// Joins pieces to whole calls.
void add_pieces(std::vector<CallPiece>& calls, const std::vector<CallPiece>& pieces);

/// One of the completions, or a piece of it.
struct CompletionPart {
  uint32_t choice = 0;
  std::string text;
  size_t text_offset = 0;  // characters before a piece of a completion
  std::optional<std::vector<TokenRecord>> tokens;
  std::vector<CallPiece> calls;
  std::string finish_reason;  // empty: the completion continues
  /// The completion begins again: earlier parts of this choice are void.
  bool again = false;
};

struct Usage {
  size_t prompt_tokens = 0, completion_tokens = 0;
  size_t cached_tokens = 0;                      // prompt tokens that were in the cache
  size_t draft_tokens = 0, accepted_tokens = 0;  // by speculative decoding
};

/// Tokens in the form of chats and responses. Where the bytes end within a character, `token` has
/// U+FFFD in its place.
nlohmann::json chat_probabilities(const std::vector<TokenRecord>& tokens);

/// The properties that all objects about one request share.
struct CompletionFormat {
  bool chat = false;
  std::string id, model;
  int64_t created = 0;

  /// The object of a completion that is not streamed.
  nlohmann::json whole(const std::vector<CompletionPart>& parts, const Usage& usage) const;
  /// A chunk. first: the chunk is the first of its choice, and names the role. usage_follows: the
  /// usage comes in the stream's last chunk.
  nlohmann::json chunk(const CompletionPart& part, bool first, bool usage_follows) const;
  nlohmann::json usage_chunk(const Usage& usage) const;

 private:
  /// of_chat: the type of the object where it belongs to a chat.
  nlohmann::json object(const char* of_chat, nlohmann::json choices) const;
  /// A choice without the message or delta of a chat.
  nlohmann::json choice(const CompletionPart& part) const;
};

/// "stop", "length".
std::string finish_reason(GenerateEnd end);

}  // namespace mulciber::apps::serve
