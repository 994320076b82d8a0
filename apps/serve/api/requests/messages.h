// Reads messages and tools of a chat into the form that chat templates take.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "apps/serve/api/requests/request_fields.h"
#include "apps/serve/api/requests/tool_choice.h"

namespace mulciber::apps::serve {

/// "messages" in the form of CompletionRequest::messages. Throws ApiError (400).
nlohmann::json read_messages(RequestFields& fields);
/// The functions of "tools" that "tool_choice" leaves, in the form of chats; "" where it is "none".
/// Throws ApiError (400).
std::string read_tools(RequestFields& fields, ToolForm form);
/// The content of a user's message: a text, or with images a list of parts in the form that
/// templates take, {"type": "text", "text": ...} and {"type": "image", "url": ...}; the URLs hold
/// images (images.h). Chats: {"type": "image_url", "image_url": {"url": ...}}; responses:
/// {"type": "input_image", "image_url": ...}. Throws ApiError (400) naming the field.
nlohmann::json read_seen_content(const nlohmann::json& content, const std::string& where,
                                 std::span<const std::string_view> types);
/// The content of a message: a text, or the texts of a list of parts of these types, one after the
/// other. Throws ApiError (400) naming the field.
std::string read_content(const nlohmann::json& content, const std::string& where,
                         std::span<const std::string_view> types);
/// A call's arguments, which OpenAI writes as JSON in a string, as the object that templates take.
/// Throws ApiError (400) naming the field.
nlohmann::json read_arguments(const nlohmann::json& given, const std::string& where);

}  // namespace mulciber::apps::serve
