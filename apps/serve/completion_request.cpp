#include "apps/serve/completion_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "apps/serve/messages.h"
#include "apps/serve/request_fields.h"
#include "apps/serve/request_grammar.h"
#include "checkpoints/json.h"
#include "mulciber/batch_generator.h"

namespace mulciber::apps::serve {
namespace {

constexpr uint32_t kMostAnswers = 128;  // as OpenAI
constexpr size_t kMostStops = 16;
constexpr size_t kMostPrompts = 128;
constexpr uint64_t kMostTokens = 1u << 24;

std::vector<std::pair<uint32_t, float>> read_logit_bias(RequestFields& fields) {
  const std::string name = "logit_bias";
  const Json* biases = fields.find(name);
  std::vector<std::pair<uint32_t, float>> made;
  if (!biases) return made;
  if (!biases->is_object()) refuse(name, "logit_bias must map token ids to numbers");
  if (biases->size() > kMostLogitBiases)
    refuse(name, fmt::format("logit_bias has {} entries, {} are taken", biases->size(),
                             kMostLogitBiases));
  for (const auto& [key, value] : biases->items()) {
    uint32_t id = 0;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (error != std::errc() || end != key.data() + key.size())
      refuse(name, fmt::format("logit_bias: '{}' is not a token id", printable(key)));
    if (!value.is_number() || !(value.get<double>() >= -100 && value.get<double>() <= 100))
      refuse(name, fmt::format("logit_bias: of token {} must be a number from -100 to 100", id));
    // -100 is OpenAI's way to forbid a token.
    const float bias =
        value.get<double>() == -100 ? -std::numeric_limits<float>::infinity() : value.get<float>();
    made.emplace_back(id, bias);
  }
  return made;
}

void read_sampling(RequestFields& fields, SamplingOptions& sampling) {
  const auto set = [&](const char* name, std::optional<float>& to, double low, double high) {
    if (const auto value = fields.number(name, low, high)) to = static_cast<float>(*value);
  };
  set("temperature", sampling.temperature, 0, 2);
  set("top_p", sampling.top_p, 0, 1);
  // The sampler takes shares above 0; the least one leaves the likeliest token alone, as 0 does.
  constexpr float kLeastShare = 1e-6f;
  if (sampling.top_p) sampling.top_p = std::max(*sampling.top_p, kLeastShare);
  set("min_p", sampling.min_p, 0, 1);
  set("typical_p", sampling.typical_p, 1e-6, 1);
  set("repetition_penalty", sampling.repetition_penalty, 1e-3, 1e3);
  set("presence_penalty", sampling.presence_penalty, -2, 2);
  set("frequency_penalty", sampling.frequency_penalty, -2, 2);
  if (const auto value = fields.whole("top_k", 0, 1u << 24))
    sampling.top_k = static_cast<uint32_t>(*value);
  // OpenAI's penalties look at the whole text.
  if (sampling.presence_penalty || sampling.frequency_penalty || sampling.repetition_penalty)
    sampling.penalty_window = std::numeric_limits<uint32_t>::max();
  // Negative seeds are seeds as well.
  if (const Json* seed = fields.find("seed")) {
    if (!seed->is_number_integer()) refuse("seed", "seed must be a whole number");
    sampling.seed = seed->is_number_unsigned() ? seed->get<uint64_t>()
                                               : static_cast<uint64_t>(seed->get<int64_t>());
  }
}

void read_common(RequestFields& fields, CompletionRequest& request) {
  request.model = fields.text("model").value_or("");
  if (const auto n = fields.whole("n", 1, kMostAnswers)) request.n = static_cast<uint32_t>(*n);
  read_sampling(fields, request.sampling);
  request.stop = fields.texts("stop", kMostStops);
  if (std::ranges::count(request.stop, "")) refuse("stop", "stop holds an empty text");
  request.logit_bias = read_logit_bias(fields);
  request.ignore_end = fields.flag("ignore_eos").value_or(false);
  request.stream = fields.flag("stream").value_or(false);
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
  for (const char* name : {"audio", "prediction", "web_search_options", "verbosity"})
    fields.only(name, nullptr, none);
  for (const char* name : {"functions", "function_call"})
    fields.only(name, nullptr, "give tools and tool_choice");
}

void read_template_variables(RequestFields& fields, CompletionRequest& request) {
  if (const auto effort = fields.text("reasoning_effort"))
    request.template_variables["reasoning_effort"] = Json(*effort).dump();
  const Json* given = fields.find("chat_template_kwargs");
  if (!given) return;
  if (!given->is_object()) refuse("chat_template_kwargs", "chat_template_kwargs must be an object");
  for (const auto& [name, value] : given->items()) {
    for (const char* own : {"messages", "tools", "add_generation_prompt"})
      if (name == own)
        refuse("chat_template_kwargs", fmt::format("chat_template_kwargs may not set {}", own));
    request.template_variables[name] = value.dump();
  }
}

}  // namespace

CompletionRequest parse_chat_request(std::string_view body) {
  RequestFields fields(body);
  CompletionRequest request;
  request.chat = true;
  read_common(fields, request);
  request.max_tokens = read_max_tokens(fields);
  request.messages_json = read_messages(fields);
  request.tools_json = read_tools(fields);
  request.grammar = read_grammar(fields, body, true);
  const bool wanted = fields.flag("logprobs").value_or(false);
  const auto likeliest = fields.whole("top_logprobs", 0, kMostLikeliest);
  if (likeliest && !wanted) refuse("top_logprobs", "top_logprobs needs logprobs");
  if (wanted) request.log_probabilities = static_cast<uint32_t>(likeliest.value_or(0));
  read_template_variables(fields, request);
  refuse_unsupported(fields);
  fields.finish();
  return request;
}

CompletionRequest parse_completion_request(std::string_view body) {
  RequestFields fields(body);
  CompletionRequest request;
  read_common(fields, request);
  request.grammar = read_grammar(fields, body, false);
  constexpr uint64_t kUsual = 16;  // OpenAI's
  request.max_tokens =
      static_cast<uint32_t>(fields.whole("max_tokens", 1, kMostTokens).value_or(kUsual));
  const Json* prompt = fields.find("prompt");
  if (!prompt) refuse("prompt", "prompt is missing");
  if (prompt->is_array() && !prompt->empty() && !prompt->front().is_string())
    refuse("prompt", "prompts of token ids are not supported: give texts", "unsupported_parameter");
  request.prompts = fields.texts("prompt", kMostPrompts);
  if (request.prompts.empty()) refuse("prompt", "prompt is an empty list");
  if (const auto likeliest = fields.whole("logprobs", 0, kMostLikeliest))
    request.log_probabilities = static_cast<uint32_t>(*likeliest);
  request.echo = fields.flag("echo").value_or(false);
  if (request.echo && request.log_probabilities)
    refuse("echo", "echo with logprobs is not supported: prompts have no probabilities here",
           "unsupported_parameter");
  fields.only("suffix", nullptr, "texts are continued at their end");
  if (const auto best = fields.whole("best_of", 1, kMostAnswers); best && *best != request.n)
    refuse("best_of", "best_of is not supported: ask for n answers", "unsupported_parameter");
  fields.finish();
  return request;
}

}  // namespace mulciber::apps::serve
