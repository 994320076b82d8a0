#include "apps/serve/api/requests/request_sampling.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "apps/cli/speculation_options.h"
#include "checkpoints/json.h"
#include "mulciber/batch_generator.h"

namespace mulciber::apps::serve {
namespace {

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

}  // namespace

std::vector<AdapterScale> read_adapters(RequestFields& fields) {
  constexpr size_t kMostAdapters = 64;
  std::vector<AdapterScale> adapters;
  const Json* list = fields.find("lora");
  if (!list) return adapters;
  if (!list->is_array() || list->size() > kMostAdapters)
    refuse("lora", fmt::format("lora must be a list of at most {} objects", kMostAdapters));
  for (const Json& one : *list) {
    RequestFields adapter(one, fmt::format("lora[{}]", adapters.size()));
    const auto name = adapter.text("name");
    if (!name) refuse(adapter.path("name"), "an object of lora has no name");
    constexpr double kMostScale = 1000;
    const auto scale = adapter.number("scale", -kMostScale, kMostScale);
    adapter.finish();
    adapters.push_back({*name, static_cast<float>(scale.value_or(1))});
  }
  return adapters;
}

namespace {

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

}  // namespace

void read_generation(RequestFields& fields, CompletionRequest& request) {
  request.model = fields.text("model").value_or("");
  read_sampling(fields, request.sampling);
  request.logit_bias = read_logit_bias(fields);
  request.adapters = read_adapters(fields);
  request.ignore_end = fields.flag("ignore_eos").value_or(false);
  // The second name of each is that of 0.1.
  for (const char* name : {"prompt_lookup", "lookup"})
    if (const auto length = fields.whole(name, 0, kMostPromptLookup))
      request.prompt_lookup = static_cast<uint32_t>(*length);
  request.draft = fields.flag("draft");
  for (const char* name : {"draft_tokens", "proposals"})
    if (const auto most = fields.whole(name, 1, kMostDraftTokens))
      request.draft_tokens = static_cast<uint32_t>(*most);
  request.stream = fields.flag("stream").value_or(false);
}

void read_template_variables(RequestFields& fields, CompletionRequest& request) {
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

}  // namespace mulciber::apps::serve
