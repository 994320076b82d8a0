#include "apps/serve/api/requests/responses_request.h"

#include <fmt/format.h>

#include "apps/serve/api/requests/messages.h"
#include "apps/serve/api/requests/request_fields.h"
#include "apps/serve/api/requests/request_grammar.h"
#include "apps/serve/api/requests/request_sampling.h"
#include "checkpoints/json.h"
#include "mulciber/batch_generator.h"

namespace mulciber::apps::serve {
namespace {

constexpr size_t kMostItems = 10'000;
constexpr size_t kMostMetadata = 16, kLongestKey = 64, kLongestValue = 512;  // OpenAI's limits
constexpr std::string_view kItemPartTypes[] = {"input_text", "output_text", "text"};

Json read_message_item(RequestFields& item) {
  std::string role = item.text("role").value_or("");
  if (role == "developer") role = "system";
  if (role != "system" && role != "user" && role != "assistant")
    refuse(item.path("role"), item.path("role") + " must be system, developer, user or assistant");
  const Json& content = item.needed("content");
  const std::string path = item.path("content");
  if (role == "user")
    return {{"role", role}, {"content", read_seen_content(content, path, kItemPartTypes)}};
  return {{"role", role}, {"content", read_content(content, path, kItemPartTypes)}};
}

/// Adds an item to the messages: calls go into the assistant's message to which they belong.
void add_item(Json& messages, RequestFields& item) {
  const std::string type = item.text("type").value_or("message");
  for (const char* name : {"id", "status", "phase"}) item.ignore(name);
  if (type == "message") {
    messages.push_back(read_message_item(item));
  } else if (type == "function_call") {
    const std::string name = item.needed_text("name"), id = item.needed_text("call_id");
    const Json arguments = read_arguments(item.needed_text("arguments"), item.path("arguments"));
    if (messages.empty() || messages.back()["role"] != "assistant")
      messages.push_back({{"role", "assistant"}, {"content", ""}});
    messages.back()["tool_calls"].push_back(
        {{"id", id},
         {"type", "function"},
         {"function", {{"name", name}, {"arguments", arguments}}}});
  } else if (type == "function_call_output") {
    const Json& output = item.needed("output");
    messages.push_back({{"role", "tool"},
                        {"tool_call_id", item.needed_text("call_id")},
                        {"content", read_content(output, item.path("output"), kItemPartTypes)}});
  } else {
    refuse(item.path("type"),
           "items of type '" + printable(type) +
               "' are not supported: message, function_call and function_call_output are",
           "unsupported_parameter");
  }
  item.finish();
}

Json read_input(RequestFields& fields) {
  Json messages = Json::array();
  const Json& input = fields.needed("input");
  if (input.is_string()) {
    messages.push_back({{"role", "user"}, {"content", input}});
    return messages;
  }
  if (!input.is_array() || input.empty() || input.size() > kMostItems)
    refuse("input", fmt::format("input must be a string or a list of 1 to {} items", kMostItems));
  for (size_t i = 0; i < input.size(); ++i) {
    RequestFields item(input[i], fmt::format("input[{}]", i));
    add_item(messages, item);
  }
  return messages;
}

Json read_metadata(RequestFields& fields) {
  const Json* given = fields.find("metadata");
  if (!given) return Json::object();
  if (!given->is_object() || given->size() > kMostMetadata)
    refuse("metadata",
           fmt::format("metadata must be an object of at most {} texts", kMostMetadata));
  for (const auto& [key, value] : given->items())
    if (!value.is_string() || key.size() > kLongestKey ||
        value.get_ref<const std::string&>().size() > kLongestValue)
      refuse("metadata",
             fmt::format("metadata has keys of at most {} and texts of at most {} bytes",
                         kLongestKey, kLongestValue));
  return *given;
}

void read_include(RequestFields& fields, CompletionRequest& request) {
  const auto likeliest = fields.whole("top_logprobs", 0, kMostLikeliest);
  for (const std::string& name : fields.texts("include", 16)) {
    if (name == "message.output_text.logprobs")
      request.tells_probabilities = true;
    else if (name != "reasoning.encrypted_content")  // accepted, though no such content exists
      refuse("include", "include: '" + printable(name) + "' is not to be had here",
             "unsupported_parameter");
  }
  if (likeliest.value_or(0) > 0) request.tells_probabilities = true;
  if (request.tells_probabilities)
    request.log_probabilities = static_cast<uint32_t>(likeliest.value_or(0));
}

void read_reasoning(RequestFields& fields, CompletionRequest& request) {
  const Json* given = fields.find("reasoning");
  if (!given) return;
  RequestFields reasoning(*given, "reasoning");
  if (const auto effort = reasoning.text("effort"))
    request.template_variables["reasoning_effort"] = Json(*effort).dump();
  for (const char* name : {"summary", "generate_summary"}) reasoning.ignore(name);
  reasoning.finish();
}

void read_unused(RequestFields& fields) {
  for (const char* name : {"user", "service_tier", "safety_identifier", "prompt_cache_key",
                           "prompt_cache_retention", "max_tool_calls"})
    fields.ignore(name);
  fields.only("background", false, "answers are made while their client waits");
  for (const char* name : {"conversation", "prompt", "context_management"})
    fields.only(name, nullptr, "the server has nothing for it");
  if (const Json* options = fields.find("stream_options")) {
    RequestFields of_stream(*options, "stream_options");
    of_stream.ignore("include_obfuscation");
    of_stream.finish();
  }
}

Json or_else(const Json* given, const Json& otherwise) { return given ? *given : otherwise; }

}  // namespace

void ResponsesRequest::set_messages(const Json& conversation, size_t from) {
  Json list = Json::array();
  if (!instructions.empty()) list.push_back({{"role", "system"}, {"content", instructions}});
  for (size_t i = 0; i < conversation.size(); ++i)
    if (i >= from || conversation[i]["role"] == "system") list.push_back(conversation[i]);
  completion.messages = std::move(list);
}

ResponsesRequest parse_responses_request(std::string_view body) {
  RequestFields fields(body);
  ResponsesRequest request;
  CompletionRequest& completion = request.completion;
  completion.chat = true;
  completion.messages_field = "input";
  read_generation(fields, completion);
  request.messages = read_input(fields);
  request.instructions = fields.text("instructions").value_or("");
  request.previous_id = fields.text("previous_response_id").value_or("");
  request.keep = fields.flag("store").value_or(true);
  const std::string truncation = fields.text("truncation").value_or("disabled");
  if (truncation != "auto" && truncation != "disabled")
    refuse("truncation", "truncation must be auto or disabled");
  request.may_cut = truncation == "auto";
  if (const auto most = fields.whole("max_output_tokens", 1, kMostTokens))
    completion.max_tokens = static_cast<uint32_t>(*most);
  const Json tools = or_else(fields.find("tools"), Json::array());
  const Json choice = or_else(fields.find("tool_choice"), "auto");
  const Json text = or_else(fields.find("text"), {{"format", {{"type", "text"}}}});
  const Json reasoning =
      or_else(fields.find("reasoning"), {{"effort", nullptr}, {"summary", nullptr}});
  completion.one_call = !fields.flag("parallel_tool_calls").value_or(true);
  completion.tools_json = read_tools(fields, ToolForm::kFlat);
  completion.grammar = read_grammar(fields, body, GrammarFields::kResponses);
  read_include(fields, completion);
  read_reasoning(fields, completion);
  read_template_variables(fields, completion);
  read_unused(fields);
  const Json metadata = read_metadata(fields);
  request.repeated = {
      {"instructions", or_else(fields.find("instructions"), nullptr)},
      {"max_output_tokens", or_else(fields.find("max_output_tokens"), nullptr)},
      {"metadata", metadata},
      {"parallel_tool_calls", or_else(fields.find("parallel_tool_calls"), true)},
      {"previous_response_id", or_else(fields.find("previous_response_id"), nullptr)},
      {"reasoning", reasoning},
      {"store", request.keep},
      {"temperature", or_else(fields.find("temperature"), nullptr)},
      {"text", text},
      {"tool_choice", choice},
      {"tools", tools},
      {"top_logprobs", completion.log_probabilities.value_or(0)},
      {"top_p", or_else(fields.find("top_p"), nullptr)},
      {"truncation", truncation},
      {"user", or_else(fields.find("user"), nullptr)}};
  fields.finish();
  return request;
}

}  // namespace mulciber::apps::serve
