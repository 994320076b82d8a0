// /v1/chat/completions and /v1/completions.
#pragma once

#include "apps/serve/api/completion_reader.h"

namespace mulciber::apps::serve {

/// Answers, or begins a stream of server-sent events that ends with [DONE]. Throws ApiError.
HttpResponse create_completion(const CompletionRequest& request, const HttpRequest& http,
                               Engine& engine, Metrics& metrics,
                               const CompletionSettings& settings);

}  // namespace mulciber::apps::serve
