// /v1/responses (endpoints.h): completions in the format of OpenAI's newer API, which may follow
// earlier ones.
#include <ctime>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "apps/serve/api/endpoints.h"
#include "apps/serve/api/model_choice.h"
#include "apps/serve/api/requests/responses_request.h"
#include "apps/serve/api/response_output.h"
#include "apps/serve/http/ids.h"
#include "checkpoints/json.h"

namespace mulciber::apps::serve {
namespace {

/// The response without its output.
struct ResponseHead {
  std::string id = new_id("resp");
  std::string model;
  int64_t created = std::time(nullptr);
  Json repeated;

  Json object(const std::string& status, Json output) const {
    Json made = repeated;
    made["id"] = id;
    made["object"] = "response";
    made["created_at"] = created;
    made["status"] = status;
    made["model"] = model;
    made["output"] = std::move(output);
    made["error"] = nullptr;
    made["incomplete_details"] = nullptr;
    made["usage"] = nullptr;
    made["background"] = false;
    return made;
  }
};

/// Where the context is too small for all messages, the oldest are dropped, up to one of the user.
std::vector<Prompt> fitting_prompts(const ServedModel& model, ResponsesRequest& request,
                                    const Json& conversation) {
  const auto prompts_from = [&](size_t from) {
    request.set_messages(conversation, from);
    return prompts_of(model, request.completion);
  };
  const auto too_long = [&](const ApiError& error) {
    return request.may_cut && error.code() == "context_length_exceeded";
  };
  try {
    return prompts_from(0);
  } catch (const ApiError& error) {
    if (!too_long(error)) throw;
  }
  std::vector<size_t> begins;
  for (size_t i = 1; i < conversation.size(); ++i)
    if (conversation[i]["role"] == "user") begins.push_back(i);
  // If any suffix of the conversation fits, the last one does.
  if (begins.empty()) return prompts_from(0);
  std::vector<Prompt> fitting = prompts_from(begins.back());
  size_t low = 0, high = begins.size() - 1;
  while (low < high) {
    const size_t middle = (low + high) / 2;
    try {
      fitting = prompts_from(begins[middle]);
      high = middle;
    } catch (const ApiError& error) {
      if (!too_long(error)) throw;
      low = middle + 1;
    }
  }
  return fitting;
}

/// A request's response while its completion comes.
class Response {
 public:
  Response(ResponseHead head, std::shared_ptr<CompletionReader> completions, Json conversation,
           bool keep, ResponseStore& store)
      : head_(std::move(head)),
        completions_(std::move(completions)),
        conversation_(std::move(conversation)),
        keep_(keep),
        store_(store) {}

  std::string whole() {
    ResponseOutput output([](const std::string&, const Json&) {});
    const CompletionPart part = completions_->whole().at(0);
    output.add(part);
    return json_line(finished(output, part.finish_reason));
  }

  void stream(const BodyWriter& write) {
    bool taken = true;
    size_t number = 0;
    const auto send = [&](const std::string& type, Json about) {
      about["type"] = type;
      about["sequence_number"] = number++;
      taken = taken && write("event: " + type + "\ndata: " + json_line(about) + "\n\n");
    };
    ResponseOutput output(send);
    try {
      for (const char* type : {"response.created", "response.in_progress"})
        send(type, {{"response", head_.object("in_progress", Json::array())}});
      std::string reason;
      while (taken) {
        const std::optional<CompletionPart> part = completions_->next();
        if (!part) break;
        output.add(*part);
        reason = part->finish_reason;
      }
      if (!taken) return;
      Json response = finished(output, reason);
      const std::string type = "response." + response["status"].get<std::string>();
      send(type, {{"response", std::move(response)}});
    } catch (const ClientGone&) {
      return;
    } catch (const std::exception& error) {
      Json response = head_.object("failed", output.items());
      response["error"] = {{"code", "server_error"}, {"message", to_api_error(error).what()}};
      send("response.failed", {{"response", std::move(response)}});
    }
  }

 private:
  /// Finishes the response and keeps it.
  Json finished(const ResponseOutput& output, const std::string& reason) {
    const bool cut = reason == "length";
    Json response = head_.object(cut ? "incomplete" : "completed", output.items());
    if (cut) response["incomplete_details"] = {{"reason", "max_output_tokens"}};
    const Usage& usage = completions_->usage();
    response["usage"] = {{"input_tokens", usage.prompt_tokens},
                         {"input_tokens_details", {{"cached_tokens", usage.cached_tokens}}},
                         {"output_tokens", usage.completion_tokens},
                         {"output_tokens_details", {{"reasoning_tokens", 0}}},
                         {"total_tokens", usage.prompt_tokens + usage.completion_tokens}};
    if (keep_) {
      conversation_.push_back(output.message());
      store_.put(head_.id, {json_line(response), json_line(conversation_)});
    }
    return response;
  }

  ResponseHead head_;
  std::shared_ptr<CompletionReader> completions_;
  Json conversation_;
  bool keep_;
  ResponseStore& store_;
};

std::string id_of(const HttpRequest& request) {
  return request.path.substr(std::string("/v1/responses/").size());
}

[[noreturn]] void no_such_response(const std::string& id) {
  throw ApiError(404, "the response '" + printable(id) + "' is not kept here", "response_id",
                 "response_not_found");
}

}  // namespace

HttpResponse create_response(const Service& service, const HttpRequest& http) {
  ResponsesRequest request = parse_responses_request(http.body);
  const ModelChoice choice =
      choose_model(service.engine, request.completion.model, Capability::kContinueText);
  Json conversation = Json::array();
  if (!request.previous_id.empty()) {
    const auto previous = service.responses.find(request.previous_id);
    if (!previous)
      refuse("previous_response_id",
             "the response '" + printable(request.previous_id) + "' is not kept here",
             "previous_response_not_found");
    conversation = Json::parse(previous->messages);
  }
  for (Json& message : request.messages) conversation.push_back(std::move(message));
  const std::vector<Prompt> prompts = fitting_prompts(choice.model, request, conversation);
  const std::vector<AdapterScale> adapters = choice.adapters(request.completion.adapters);
  std::shared_ptr<CompletionReader> completions =
      begin_completions({choice.model, request.completion, prompts, adapters}, http, service.engine,
                        service.metrics, service.completions);
  const bool streams = request.completion.stream;
  if (streams) completions->wait_for_first();
  ResponseHead head = {.model = choice.name(), .repeated = std::move(request.repeated)};
  const auto response =
      std::make_shared<Response>(std::move(head), std::move(completions), std::move(conversation),
                                 request.keep, service.responses);
  if (!streams) return {.body = response->whole() + "\n"};
  return {.type = "text/event-stream", .body = {}, .stream = [response](const BodyWriter& write) {
            response->stream(write);
          }};
}

HttpResponse show_response(const Service& service, const HttpRequest& http) {
  const std::string id = id_of(http);
  const auto found = service.responses.find(id);
  if (!found) no_such_response(id);
  return {.body = found->object + "\n"};
}

HttpResponse delete_response(const Service& service, const HttpRequest& http) {
  const std::string id = id_of(http);
  if (!service.responses.erase(id)) no_such_response(id);
  return {.body = json_line({{"id", id}, {"object", "response"}, {"deleted", true}}) + "\n"};
}

}  // namespace mulciber::apps::serve
