#include "apps/serve/api/requests/completion_request.h"

#include <fmt/format.h>

#include <algorithm>

#include "apps/serve/api/requests/messages.h"
#include "apps/serve/api/requests/request_fields.h"
#include "apps/serve/api/requests/request_grammar.h"
#include "apps/serve/api/requests/request_sampling.h"
#include "checkpoints/json.h"
#include "mulciber/batch_generator.h"

namespace mulciber::apps::serve {
namespace {

constexpr uint32_t kMostCompletions = 128;  // OpenAI's limit
constexpr size_t kMostStops = 16;
constexpr size_t kMostPrompts = 128;

void read_common(RequestFields& fields, CompletionRequest& request) {
  read_generation(fields, request);
  if (const auto n = fields.whole("n", 1, kMostCompletions)) request.n = static_cast<uint32_t>(*n);
  request.stop = fields.texts("stop", kMostStops);
  if (std::ranges::count(request.stop, "")) refuse("stop", "stop holds an empty text");
  if (const Json* options = fields.find("stream_options")) {
    if (!request.stream) refuse("stream_options", "stream_options needs stream");
    RequestFields of_stream(*options, "stream_options");
    request.include_usage = of_stream.flag("include_usage").value_or(false);
    of_stream.ignore("include_obfuscation");
    of_stream.finish();
  }
  for (const char* name : {"user", "metadata", "service_tier", "safety_identifier",
                           "prompt_cache_key", "prompt_cache_retention"})
    fields.ignore(name);
}

uint32_t read_max_tokens(RequestFields& fields) {
  const auto older = fields.whole("max_tokens", 1, kMostTokens);
  const auto newer = fields.whole("max_completion_tokens", 1, kMostTokens);
  if (older && newer) refuse("max_tokens", "give max_tokens or max_completion_tokens, not both");
  return static_cast<uint32_t>(newer.value_or(older.value_or(0)));
}

void refuse_unsupported(RequestFields& fields) {
  fields.only("modalities", Json::array({"text"}), "answers are text");
  fields.only("store", false, "answers are not kept");
  const std::string none = "the server has nothing for it";
  for (const char* name : {"audio", "prediction", "web_search_options"})
    fields.only(name, nullptr, none);
  fields.only_usual("verbosity", "medium");
  for (const char* name : {"functions", "function_call"})
    fields.only(name, nullptr, "give tools and tool_choice");
}

}  // namespace

CompletionRequest parse_chat_request(std::string_view body) {
  RequestFields fields(body);
  CompletionRequest request;
  request.chat = true;
  read_common(fields, request);
  request.max_tokens = read_max_tokens(fields);
  request.messages = read_messages(fields);
  request.one_call = !fields.flag("parallel_tool_calls").value_or(true);
  request.tools_json = read_tools(fields, ToolForm::kNested);
  request.grammar = read_grammar(fields, body, GrammarFields::kChat);
  const bool wanted = fields.flag("logprobs").value_or(false);
  const auto likeliest = fields.whole("top_logprobs", 0, kMostLikeliest);
  if (likeliest && !wanted) refuse("top_logprobs", "top_logprobs needs logprobs");
  if (wanted) request.log_probabilities = static_cast<uint32_t>(likeliest.value_or(0));
  request.tells_probabilities = wanted;
  if (const auto effort = fields.text("reasoning_effort"))
    request.template_variables["reasoning_effort"] = Json(*effort).dump();
  read_template_variables(fields, request);
  refuse_unsupported(fields);
  fields.finish();
  return request;
}

CompletionRequest parse_completion_request(std::string_view body) {
  RequestFields fields(body);
  CompletionRequest request;
  read_common(fields, request);
  request.grammar = read_grammar(fields, body, GrammarFields::kCompletion);
  constexpr uint64_t kUsual = 16;  // OpenAI's
  request.max_tokens =
      static_cast<uint32_t>(fields.whole("max_tokens", 0, kMostTokens).value_or(kUsual));
  request.prompts_only = request.max_tokens == 0;
  fields.needed("prompt");
  request.prompts = fields.texts_or_ids("prompt", kMostPrompts);
  if (request.prompts.empty()) refuse("prompt", "prompt is an empty list");
  if (const auto likeliest = fields.whole("logprobs", 0, kMostLikeliest))
    request.log_probabilities = static_cast<uint32_t>(*likeliest);
  request.echo = fields.flag("echo").value_or(false);
  request.tells_probabilities = request.log_probabilities.has_value();
  if (request.prompts_only && !request.echo)
    refuse("max_tokens", "max_tokens may be 0 only with echo");
  if (request.prompts_only && request.stream)
    refuse("stream", "an echo alone is not streamed: ask without stream");
  fields.only("suffix", nullptr, "texts are continued at their end");
  if (const auto best = fields.whole("best_of", 1, kMostCompletions)) {
    if (*best < request.n) refuse("best_of", "best_of must be n at least");
    if (*best > request.n) {
      if (request.stream)
        refuse("best_of", "which answers are the best is known at the end: ask without stream");
      request.best_of = static_cast<uint32_t>(*best);
      if (!request.log_probabilities) request.log_probabilities = 0;
    }
  }
  fields.finish();
  return request;
}

}  // namespace mulciber::apps::serve
