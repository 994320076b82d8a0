// What a request says that its answers may be.
#pragma once

#include <optional>
#include <string_view>

#include "apps/serve/api/requests/request_fields.h"
#include "mulciber/grammar.h"

namespace mulciber::apps::serve {

/// Whose fields they are.
enum class GrammarFields { kChat, kCompletion, kResponses };
/// response_format of a chat, text.format of responses, tool_choice where a tool must be called,
/// and beyond OpenAI's interface guided_json, guided_regex (as vLLM) and grammar (GBNF, as
/// llama.cpp). body: that the fields were read from, for the order of properties. Throws ApiError
/// (400) naming the field.
std::optional<Grammar> read_grammar(RequestFields& fields, std::string_view body, GrammarFields of);

}  // namespace mulciber::apps::serve
