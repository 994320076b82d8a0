// The endpoints of the server.
#pragma once

#include <string>

#include "apps/serve/api/completions.h"
#include "apps/serve/api/response_store.h"
#include "apps/serve/engine/engine.h"
#include "apps/serve/engine/metrics.h"
#include "apps/serve/http/http_server.h"

namespace mulciber::apps::serve {

struct Service {
  Engine& engine;
  Metrics& metrics;
  ResponseStore& responses;
  CompletionSettings completions;
  uint32_t attention_tokens;  // most tokens of prompt and answer for a request of /attention
};

/// Adds all endpoints; `service` must outlive the server.
void add_endpoints(HttpServer& server, Service& service);

// The endpoints by what they need; each throws ApiError.
HttpResponse list_models(const Service& service);
HttpResponse show_model(const Service& service, const std::string& id);
HttpResponse create_response(const Service& service, const HttpRequest& request);
HttpResponse show_response(const Service& service, const HttpRequest& request);
HttpResponse delete_response(const Service& service, const HttpRequest& request);
HttpResponse embed_texts(const Service& service, const HttpRequest& request);
HttpResponse tokenize_text(const Service& service, const HttpRequest& request);
HttpResponse detokenize_ids(const Service& service, const HttpRequest& request);
HttpResponse show_attention(const Service& service, const HttpRequest& request);
HttpResponse translate_texts(const Service& service, const HttpRequest& request);
HttpResponse transcribe_sound(const Service& service, const HttpRequest& request);

}  // namespace mulciber::apps::serve
