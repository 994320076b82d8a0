// A request's answers from its prompts to their texts and calls: what chats, completions and
// responses have in common.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/serve/api/answer_session.h"
#include "apps/serve/api/requests/completion_request.h"
#include "apps/serve/api/tool_calls.h"
#include "apps/serve/engine/engine.h"
#include "apps/serve/http/http.h"

namespace mulciber::apps::serve {

struct CompletionSettings {
  int most_seconds = 600;              // of an answer, the wait for its turn included
  uint32_t most_tokens = 0;            // of an answer; 0: what the context has room for
  bool reuse_answers = false;          // BatchRequest::reuse_answers
  uint32_t lookup = 0, proposals = 0;  // of requests that say nothing of it
};

/// The parts of answers, with calls of tools taken out of the text.
class AnswerReader {
 public:
  /// tools: a reader that has read nothing.
  AnswerReader(std::unique_ptr<AnswerSession> session, ToolCallReader tools, size_t choices);

  /// As AnswerSession's.
  void wait_for_first() { session_->wait_for_first(); }
  /// What came next and is news: text, tokens, calls, an end. Where the answer had to begin anew
  /// and some of it was told already, throws ApiError (503, device_lost).
  std::optional<AnswerPart> next();
  /// All that comes, put together for each choice.
  std::vector<AnswerPart> whole();
  const Usage& usage() const { return session_->usage(); }

 private:
  std::optional<AnswerPart> take();

  std::unique_ptr<AnswerSession> session_;
  const ToolCallReader fresh_;
  std::vector<ToolCallReader> tools_;
  std::vector<bool> told_;  // something of the choice
};

/// A prompt as the model gets it.
struct Prompt {
  std::string text;
  bool add_special = true, parse_special = true;
  std::vector<uint32_t> ids = {};  // those of the text, or such as were given
  std::vector<std::shared_ptr<const PreparedPicture>> pictures = {};
};

/// The prompts of a request, which fit into the model's context. Throws ApiError (400).
std::vector<Prompt> prompts_of(const ServedModel& model, const CompletionRequest& request);

/// Hands a request to the engine; `choices`: of all prompts together. Throws ApiError.
struct AnswersAsked {
  ServedModel& model;
  const CompletionRequest& request;
  const std::vector<Prompt>& prompts;
  const std::vector<AdapterScale>& adapters;
  std::vector<std::vector<TokenRecord>> tokens_before = {};  // as SessionSettings, by prompt
};
std::shared_ptr<AnswerReader> begin_answers(const AnswersAsked& asked, const HttpRequest& http,
                                            Engine& engine, Metrics& metrics,
                                            const CompletionSettings& settings);

}  // namespace mulciber::apps::serve
