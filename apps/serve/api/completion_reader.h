// Leads a request from its prompts to the texts and tool calls of its completions. Chats,
// completions and responses share it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/serve/api/completion_session.h"
#include "apps/serve/api/requests/completion_request.h"
#include "apps/serve/api/tool_calls.h"
#include "apps/serve/engine/engine.h"
#include "apps/serve/http/http.h"

namespace mulciber::apps::serve {

struct CompletionSettings {
  int most_seconds = 600;          // for a completion, its time in the queue included
  uint32_t most_tokens = 0;        // for a completion; 0: as many as the context has room for
  bool reuse_completions = false;  // BatchRequest::reuse_completions
  uint32_t prompt_lookup = 0, draft_tokens = 0;  // for requests without these fields
};

/// Reads the parts of completions, and takes tool calls out of their text.
class CompletionReader {
 public:
  /// tools: a reader that has read nothing yet.
  CompletionReader(std::unique_ptr<CompletionSession> session, ToolCallReader tools,
                   size_t choices);

  /// Waits as CompletionSession does.
  void wait_for_first() { session_->wait_for_first(); }
  /// The next part that has something new: text, tokens, calls, an end. Throws ApiError (503,
  /// device_lost) where the completion had to begin again after a part of it had been returned.
  std::optional<CompletionPart> next();
  /// Reads all parts, and joins those of each choice.
  std::vector<CompletionPart> whole();
  const Usage& usage() const { return session_->usage(); }

 private:
  std::optional<CompletionPart> take();

  std::unique_ptr<CompletionSession> session_;
  const ToolCallReader fresh_;
  std::vector<ToolCallReader> tools_;
  std::vector<bool> told_;  // whether a part of the choice was returned
};

/// A prompt in the form that the model gets.
struct Prompt {
  std::string text;
  bool add_special = true, parse_special = true;
  std::vector<uint32_t> ids = {};  // the text's, or those that the request gave
  std::vector<std::shared_ptr<const PreparedImage>> images = {};
};

/// The prompts of a request, which fit into the model's context. Throws ApiError (400).
std::vector<Prompt> prompts_of(const ServedModel& model, const CompletionRequest& request);

/// The arguments of begin_completions(), which hands a request's prompts to the engine. Throws
/// ApiError.
struct CompletionsAsked {
  ServedModel& model;
  const CompletionRequest& request;
  const std::vector<Prompt>& prompts;
  const std::vector<AdapterScale>& adapters;
  /// SessionSettings::tokens_before, by prompt.
  std::vector<std::vector<TokenRecord>> tokens_before = {};
};
std::shared_ptr<CompletionReader> begin_completions(const CompletionsAsked& asked,
                                                    const HttpRequest& http, Engine& engine,
                                                    Metrics& metrics,
                                                    const CompletionSettings& settings);

}  // namespace mulciber::apps::serve
