#include "apps/serve/api/response_output.h"

#include <utility>

#include "apps/serve/http/ids.h"
#include "checkpoints/json.h"
#include "mulciber/error.h"

namespace mulciber::apps::serve {

Json ResponseOutput::part_of(const Item& item) const {
  return {{"type", "output_text"},
          {"text", item.text},
          {"annotations", Json::array()},
          {"logprobs", chat_probabilities(item.tokens)}};
}

Json ResponseOutput::json_of(const Item& item) const {
  if (item.is_call)
    return {{"type", "function_call"},          {"id", item.id},
            {"call_id", item.call.id},          {"name", item.call.name},
            {"arguments", item.call.arguments}, {"status", item.status}};
  Json content = Json::array();
  if (item.status != "in_progress") content.push_back(part_of(item));
  return {{"type", "message"},
          {"id", item.id},
          {"role", "assistant"},
          {"status", item.status},
          {"content", std::move(content)}};
}

/// The fields that locate an event's item.
Json ResponseOutput::place(const Item& item, bool in_content) const {
  Json about = {{"item_id", item.id}, {"output_index", items_.size() - 1}};
  if (in_content) about["content_index"] = 0;
  return about;
}

void ResponseOutput::begin(Item item) {
  if (!items_.empty()) end("completed");
  items_.push_back(std::move(item));
  const Item& last = items_.back();
  event_("response.output_item.added",
         {{"output_index", items_.size() - 1}, {"item", json_of(last)}});
  if (last.is_call) return;
  Json about = place(last, true);
  about["part"] = part_of(last);
  event_("response.content_part.added", std::move(about));
}

void ResponseOutput::end(const std::string& status) {
  Item& item = items_.back();
  item.status = status;
  Json about = place(item, !item.is_call);
  if (item.is_call) {
    about["name"] = item.call.name;
    about["arguments"] = item.call.arguments;
    event_("response.function_call_arguments.done", std::move(about));
  } else {
    Json of_part = about;
    about["text"] = item.text;
    about["logprobs"] = chat_probabilities(item.tokens);
    event_("response.output_text.done", std::move(about));
    of_part["part"] = part_of(item);
    event_("response.content_part.done", std::move(of_part));
  }
  event_("response.output_item.done",
         {{"output_index", items_.size() - 1}, {"item", json_of(item)}});
}

void ResponseOutput::add_text(const CompletionPart& part) {
  if (items_.empty() || items_.back().is_call) begin({.id = new_id("msg")});
  Item& item = items_.back();
  item.text += part.text;
  Json about = place(item, true);
  about["delta"] = part.text;
  const std::vector<TokenRecord> tokens = part.tokens.value_or(std::vector<TokenRecord>());
  about["logprobs"] = chat_probabilities(tokens);
  item.tokens.insert(item.tokens.end(), tokens.begin(), tokens.end());
  event_("response.output_text.delta", std::move(about));
}

void ResponseOutput::add_call(const CallPiece& piece) {
  if (!piece.id.empty()) {
    Item item = {.id = new_id("fc"), .is_call = true};
    item.call = {piece.index, piece.id, piece.name, ""};
    begin(std::move(item));
  }
  if (piece.arguments.empty()) return;
  Item& item = items_.back();
  item.call.arguments += piece.arguments;
  Json about = place(item, false);
  about["delta"] = piece.arguments;
  event_("response.function_call_arguments.delta", std::move(about));
}

void ResponseOutput::add(const CompletionPart& part) {
  const bool last = !part.finish_reason.empty();
  if (!part.text.empty()) add_text(part);
  for (const CallPiece& piece : part.calls) add_call(piece);
  // An empty completion is an empty text.
  if (last && items_.empty()) begin({.id = new_id("msg")});
  if (last) end(part.finish_reason == "length" ? "incomplete" : "completed");
}

Json ResponseOutput::items() const {
  Json list = Json::array();
  for (const Item& item : items_) list.push_back(json_of(item));
  return list;
}

Json ResponseOutput::message() const {
  std::string text;
  Json calls = Json::array();
  for (const Item& item : items_) {
    text += item.text;
    if (!item.is_call) continue;
    Json arguments = item.call.arguments;
    try {
      arguments = parse_json(item.call.arguments, "arguments");
    } catch (const ModelError&) {  // the arguments stay as the model wrote them
    }
    calls.push_back(
        {{"id", item.call.id},
         {"type", "function"},
         {"function", {{"name", item.call.name}, {"arguments", std::move(arguments)}}}});
  }
  Json message = {{"role", "assistant"}, {"content", std::move(text)}};
  if (!calls.empty()) message["tool_calls"] = std::move(calls);
  return message;
}

}  // namespace mulciber::apps::serve
