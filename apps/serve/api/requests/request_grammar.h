// Reads the grammar that a request sets for its answers.
#pragma once

#include <optional>
#include <string_view>

#include "apps/serve/api/requests/request_fields.h"
#include "mulciber/grammar.h"

namespace mulciber::apps::serve {

/// The kind of request that has the fields.
enum class GrammarFields { kChat, kCompletion, kResponses };
/// Reads response_format of a chat, text.format of responses, tool_choice where a tool must be
/// called, and beyond OpenAI's API guided_json, guided_regex (as in vLLM) and grammar (GBNF, as in
/// llama.cpp). body: the text from which the fields were read, for the order of properties. Throws
/// ApiError (400) naming the field.
std::optional<Grammar> read_grammar(RequestFields& fields, std::string_view body, GrammarFields of);

}  // namespace mulciber::apps::serve
