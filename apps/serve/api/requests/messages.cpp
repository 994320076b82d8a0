#include "apps/serve/api/requests/messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "checkpoints/json.h"
#include "mulciber/error.h"

namespace mulciber::apps::serve {
namespace {

constexpr size_t kMostMessages = 10'000;
constexpr size_t kMostTools = 256;
constexpr std::string_view kPartTypes[] = {"text"};

Json read_call(const Json& given, const std::string& where) {
  RequestFields call(given, where);
  call.ignore("index");
  call.only("type", "function", "calls are of functions");
  const std::string id = call.text("id").value_or("");
  RequestFields function(call.needed("function"), call.path("function"));
  const std::string name = function.needed_text("name");
  Json arguments = Json::object();
  if (const Json* found = function.find("arguments"))
    arguments = read_arguments(*found, function.path("arguments"));
  return {{"id", id},
          {"type", "function"},
          {"function", {{"name", name}, {"arguments", std::move(arguments)}}}};
}

Json read_message(const Json& given, const std::string& where) {
  RequestFields fields(given, where);
  std::string role = fields.text("role").value_or("");
  if (role == "developer") role = "system";  // OpenAI's newer word
  if (role != "system" && role != "user" && role != "assistant" && role != "tool")
    refuse(fields.path("role"),
           fields.path("role") + " must be system, developer, user, assistant or tool");
  Json message = {{"role", role}};
  const Json* calls = fields.find("tool_calls");
  if (role == "assistant" && calls && !fields.find("content"))
    message["content"] = "";
  else
    message["content"] =
        role == "user"
            ? read_seen_content(fields.needed("content"), fields.path("content"), kPartTypes)
            : Json(read_content(fields.needed("content"), fields.path("content"), kPartTypes));
  if (calls) {
    if (role != "assistant" || !calls->is_array())
      refuse(fields.path("tool_calls"), "tool_calls must be a list, in a message of the assistant");
    Json list = Json::array();
    for (size_t i = 0; i < calls->size(); ++i)
      list.push_back(read_call((*calls)[i], fmt::format("{}.tool_calls[{}]", where, i)));
    if (!list.empty()) message["tool_calls"] = std::move(list);
  }
  for (const char* name : {"name", "tool_call_id", "reasoning_content"})
    if (const auto text = fields.text(name)) message[name] = *text;
  fields.ignore("annotations");  // returned answers have the field, as OpenAI gave it
  for (const char* name : {"refusal", "audio", "function_call"})
    fields.only(name, nullptr, "messages are texts");
  fields.finish();
  return message;
}

}  // namespace

std::string read_content(const Json& content, const std::string& where,
                         std::span<const std::string_view> types) {
  if (content.is_string()) return content.get<std::string>();
  if (!content.is_array()) refuse(where, where + " must be a string or a list of parts");
  std::string text;
  for (size_t i = 0; i < content.size(); ++i) {
    RequestFields part(content[i], fmt::format("{}[{}]", where, i));
    const std::string type = part.text("type").value_or("");
    if (std::ranges::find(types, type) == types.end())
      refuse(part.path("type"),
             "parts of type '" + printable(type) +
                 "' are not supported here: texts are, and images in messages of the user",
             "unsupported_parameter");
    text += part.needed_text("text");
  }
  return text;
}

namespace {

constexpr std::string_view kChatImage = "image_url", kResponseImage = "input_image";

Json read_image_part(RequestFields& part, std::string_view type) {
  const auto url_of = [](RequestFields& fields, const char* name) {
    std::string url = fields.needed_text(name);
    const std::string path = fields.path(name);
    constexpr std::string_view kTypes[] = {"data:image/png;base64,", "data:image/jpeg;base64,",
                                           "data:image/jpg;base64,", "data:image/webp;base64,"};
    if (!std::ranges::any_of(kTypes,
                             [&](std::string_view begin) { return url.starts_with(begin); }))
      refuse(path,
             path +
                 " must be a data: URL of a PNG, JPEG or WebP image in base64 "
                 "(data:image/png;base64,...): the server fetches nothing",
             "invalid_image_url");
    const std::string detail = fields.text("detail").value_or("auto");
    if (detail != "auto" && detail != "low" && detail != "high" && detail != "original")
      refuse(fields.path("detail"), fields.path("detail") + " must be auto, low, high or original");
    return url;
  };
  if (type == kResponseImage) {
    part.only("file_id", nullptr, "images come as data: URLs");
    return {{"type", "image"}, {"url", url_of(part, "image_url")}};
  }
  RequestFields inside(part.needed("image_url"), part.path("image_url"));
  Json read = {{"type", "image"}, {"url", url_of(inside, "url")}};
  inside.finish();
  return read;
}

bool is_function_name(std::string_view name) {
  constexpr size_t kLongest = 64;
  constexpr std::string_view kOthers = "_-.:";  // OpenAI allows the first two
  return !name.empty() && name.size() <= kLongest && std::ranges::all_of(name, [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           kOthers.find(c) != kOthers.npos;
  });
}

}  // namespace

Json read_seen_content(const Json& content, const std::string& where,
                       std::span<const std::string_view> types) {
  const std::string_view image =
      std::ranges::find(types, "input_text") == types.end() ? kChatImage : kResponseImage;
  const auto shows = [&](const Json& part) {
    const auto type = part.is_object() ? part.find("type") : part.end();
    return part.is_object() && type != part.end() && *type == image;
  };
  if (!content.is_array() || std::ranges::none_of(content, shows))
    return read_content(content, where, types);
  Json parts = Json::array();
  for (size_t i = 0; i < content.size(); ++i) {
    const std::string path = fmt::format("{}[{}]", where, i);
    if (shows(content[i])) {
      RequestFields part(content[i], path);
      parts.push_back(read_image_part(part, image));
    } else {
      // Errors name the part where it stands.
      RequestFields part(content[i], path);
      const std::string type = part.text("type").value_or("");
      if (std::ranges::find(types, type) == types.end())
        refuse(part.path("type"), "parts of type '" + printable(type) + "' are not supported",
               "unsupported_parameter");
      parts.push_back({{"type", "text"}, {"text", part.needed_text("text")}});
    }
  }
  return parts;
}

Json read_arguments(const Json& given, const std::string& where) {
  if (!given.is_string()) return given;
  // Clients write calls without arguments in this form, too.
  if (given == "") return Json::object();
  try {
    return parse_json(given.get<std::string>(), where);
  } catch (const ModelError& error) {
    refuse(where, where + " " + error.problem());
  }
}

Json read_messages(RequestFields& fields) {
  const Json& given = fields.needed("messages");
  if (!given.is_array() || given.empty() || given.size() > kMostMessages)
    refuse("messages", fmt::format("messages must be a list of 1 to {} messages", kMostMessages));
  Json messages = Json::array();
  for (size_t i = 0; i < given.size(); ++i)
    messages.push_back(read_message(given[i], fmt::format("messages[{}]", i)));
  return messages;
}

std::string read_tools(RequestFields& fields, ToolForm form) {
  const Json* tools = fields.find("tools");
  const ToolChoice choice = read_tool_choice(fields, form);
  if (!tools) return {};
  if (!tools->is_array() || tools->size() > kMostTools)
    refuse("tools", fmt::format("tools must be a list of at most {}", kMostTools));
  Json made = Json::array();
  std::set<std::string> names;
  for (size_t i = 0; i < tools->size(); ++i) {
    const std::string where = fmt::format("tools[{}]", i);
    RequestFields tool((*tools)[i], where);
    if (tool.text("type").value_or("") != "function")
      refuse(tool.path("type"), "only tools of type function are supported",
             "unsupported_parameter");
    Json description = (*tools)[i];
    std::string inside = where;
    if (form == ToolForm::kNested) {
      description = tool.needed("function");
      inside = tool.path("function");
    }
    RequestFields function(description, inside);
    const std::string name = function.needed_text("name");
    if (!is_function_name(name))
      refuse(function.path("name"),
             function.path("name") +
                 " must have 1 to 64 of the letters a to z, A to Z, digits, '_', '-', '.' and ':'");
    if (!names.insert(name).second)
      refuse(function.path("name"), fmt::format("two functions have the name '{}'", name));
    if (choice.hides_others && !choice.allows(name)) continue;
    if (form == ToolForm::kFlat) description.erase("type");
    made.push_back({{"type", "function"}, {"function", std::move(description)}});
  }
  if (tools->empty() || choice.mode == ToolChoice::Mode::kNone) return {};
  return made.dump();
}

}  // namespace mulciber::apps::serve
