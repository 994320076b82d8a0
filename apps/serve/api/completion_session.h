// One request's completions on their way from the engine to the client.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "apps/serve/api/completion_format.h"
#include "apps/serve/engine/completion_channel.h"
#include "apps/serve/engine/metrics.h"

namespace mulciber::apps::serve {

struct SessionSettings {
  uint32_t choices = 1;
  uint32_t completions_per_prompt = 1;  // a prompt's tokens count once for all its completions
  bool probabilities = false;
  std::vector<std::string> before;  // for each choice: the text with which it begins
  /// For each choice: the tokens of that text, where probabilities are wanted.
  std::vector<std::vector<TokenRecord>> tokens_before = {};
  std::chrono::seconds most_time{600};
};

/// Reads a channel to its end. A session that is destroyed before cancels the other completions.
class CompletionSession {
 public:
  CompletionSession(std::shared_ptr<CompletionChannel> channel,
                    std::shared_ptr<const Tokenizer> tokenizer, const SessionSettings& settings,
                    std::function<bool()> gone, Metrics& metrics);
  ~CompletionSession();
  CompletionSession(const CompletionSession&) = delete;
  CompletionSession& operator=(const CompletionSession&) = delete;

  /// Waits for the first event, so that an error which ends a request at once is not sent as a
  /// stream.
  void wait_for_first();
  /// The next part, of any choice; nothing once all choices are complete. Throws ApiError where a
  /// completion failed or took too long, ClientGone where the client has left.
  std::optional<CompletionPart> next();
  /// Ends a completion before its next token, because no more of it is needed.
  void end(uint32_t choice) { channel_->end(choice); }
  const Usage& usage() const { return usage_; }

 private:
  struct Choice {
    TokenTexts texts;
    std::vector<TokenRecord> pending;  // tokens whose text is held back
    size_t offset = 0;                 // characters so far
    bool begun = false;
    std::chrono::steady_clock::time_point latest;
  };
  static Choice new_choice(const std::shared_ptr<const Tokenizer>& tokenizer);
  CompletionEvent wait();
  std::optional<CompletionPart> take(CompletionEvent event);
  void measure(Choice& choice);

  std::shared_ptr<CompletionChannel> channel_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  SessionSettings settings_;
  std::function<bool()> gone_;
  Metrics& metrics_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::vector<Choice> choices_;
  std::optional<CompletionEvent> first_;
  uint32_t open_;
  Usage usage_;
};

}  // namespace mulciber::apps::serve
