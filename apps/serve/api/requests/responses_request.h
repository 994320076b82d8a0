// The body of /v1/responses, whose items become the messages of a chat.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "apps/serve/api/requests/completion_request.h"

namespace mulciber::apps::serve {

struct ResponsesRequest {
  CompletionRequest completion;  // messages are filled by set_messages()
  nlohmann::json messages;       // the messages of `input`
  std::string instructions;      // a system message before everything; empty: none
  std::string previous_id;       // id of the response that this one follows
  bool keep = true;              // keep the response for later requests
  bool may_cut = false;          // drop the oldest messages where the context has no room for all
  /// The fields of the request that the response repeats, with defaults for those left out.
  nlohmann::json repeated;

  /// Takes the messages from number `from` on; earlier instructions stay.
  void set_messages(const nlohmann::json& conversation, size_t from);
};

/// Throws ApiError (400) naming the field, as parse_chat_request() does.
ResponsesRequest parse_responses_request(std::string_view body);

}  // namespace mulciber::apps::serve
