// /v1/chat/completions and /v1/completions.
#pragma once

#include "apps/serve/completion_request.h"
#include "apps/serve/engine.h"
#include "apps/serve/http.h"

namespace mulciber::apps::serve {

struct CompletionSettings {
  int most_seconds = 600;    // of an answer, the wait for its turn included
  uint32_t most_tokens = 0;  // of an answer; 0: what the context has room for
};

/// Answers, or begins a stream of server-sent events that ends with [DONE]. Throws ApiError.
HttpAnswer answer_completion(const CompletionRequest& request, const HttpRequest& http,
                             Engine& engine, Metrics& metrics, const CompletionSettings& settings);

}  // namespace mulciber::apps::serve
