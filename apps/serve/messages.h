// Messages and tools of a chat, read into the form that chat templates take.
#pragma once

#include <string>

#include "apps/serve/request_fields.h"

namespace mulciber::apps::serve {

/// "messages" as CompletionRequest::messages_json. Throws ApiError (400).
std::string read_messages(RequestFields& fields);
/// "tools", as "tool_choice" has it: "auto" and "none" are taken. Throws ApiError (400).
std::string read_tools(RequestFields& fields);

}  // namespace mulciber::apps::serve
