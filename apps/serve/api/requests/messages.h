// Messages and tools of a chat, read into the form that chat templates take.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "apps/serve/api/requests/request_fields.h"
#include "apps/serve/api/requests/tool_choice.h"

namespace mulciber::apps::serve {

/// "messages" as CompletionRequest::messages has them. Throws ApiError (400).
nlohmann::json read_messages(RequestFields& fields);
/// The functions of "tools" that "tool_choice" leaves, as chats have them; "" where it is "none".
/// Throws ApiError (400).
std::string read_tools(RequestFields& fields, ToolForm form);
/// What a user's message says: the same, or with pictures a list of parts as templates take them,
/// {"type": "text", "text": ...} and {"type": "image", "url": ...}; the URLs hold pictures
/// (pictures.h). Chats: {"type": "image_url", "image_url": {"url": ...}}; responses: {"type":
/// "input_image", "image_url": ...}. Throws ApiError (400) naming the field.
nlohmann::json read_seen_content(const nlohmann::json& content, const std::string& where,
                                 std::span<const std::string_view> types);
/// What a message says: a text, or the texts of a list of parts of these types, one after the
/// other. Throws ApiError (400) naming the field.
std::string read_content(const nlohmann::json& content, const std::string& where,
                         std::span<const std::string_view> types);
/// A call's arguments, which OpenAI has as JSON in a string, as the object that templates take.
/// Throws ApiError (400) naming the field.
nlohmann::json read_arguments(const nlohmann::json& given, const std::string& where);

}  // namespace mulciber::apps::serve
