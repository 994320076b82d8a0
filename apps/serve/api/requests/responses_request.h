// What a client asks of /v1/responses: its items become the messages of a chat.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "apps/serve/api/requests/completion_request.h"

namespace mulciber::apps::serve {

struct ResponsesRequest {
  CompletionRequest completion;  // messages are filled by set_messages()
  nlohmann::json messages;       // of `input`
  std::string instructions;      // a system message before everything; empty: none
  std::string previous_id;       // of the response that this one follows
  bool keep = true;              // for later requests
  bool may_cut = false;          // the oldest messages, where the context has no room for all
  /// What the response repeats of the request, with what it left open.
  nlohmann::json repeated;

  /// From a message on; earlier ones that say how to answer stay.
  void set_messages(const nlohmann::json& conversation, size_t from);
};

/// Throws ApiError (400) naming the field, as parse_chat_request().
ResponsesRequest parse_responses_request(std::string_view body);

}  // namespace mulciber::apps::serve
