// /attention (endpoints.h): the attention maps of a finished answer, by a pass over its text beside
// the answers that are decoded.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "apps/attention/text_maps.h"
#include "apps/serve/api/endpoints.h"
#include "apps/serve/api/model_choice.h"
#include "apps/serve/api/requests/messages.h"
#include "apps/serve/api/requests/request_fields.h"
#include "apps/serve/api/requests/request_sampling.h"
#include "checkpoints/json.h"

namespace mulciber::apps::serve {
namespace {

/// The texts that the model read and wrote, in the form of one request.
struct FinishedText {
  std::string prompt, completion;
  bool add_special = true, parse_special = true;  // for the prompt
};

/// The last message is the completion; the messages before it make the prompt, as they did in the
/// original request.
FinishedText from_messages(RequestFields& fields, const ServedModel& model) {
  if (!model.chat_template)
    refuse("model",
           fmt::format("the model '{}' has no chat template: give prompt and completion", model.id),
           "no_chat_template");
  Json messages = read_messages(fields);
  for (const Json& message : messages)
    if (message.contains("content") && message["content"].is_array())
      refuse("messages", "maps of conversations with images are not shown",
             "unsupported_parameter");
  const Json last = messages.back();
  messages.erase(messages.end() - 1);
  if (messages.empty() || last.value("role", "") != "assistant" || !last.contains("content") ||
      !last["content"].is_string())
    refuse("messages", "messages must end with a completion: role assistant, content a text");
  const ChatTemplate& chat_template = *model.chat_template;
  FinishedText text = {.prompt = {},
                       .completion = last["content"].get<std::string>(),
                       .add_special = chat_template.plain(),
                       .parse_special = !chat_template.plain()};
  try {
    text.prompt = chat_template.render_json(
        messages.dump(), {.tools_json = {}, .variables = {}, .now = std::nullopt});
  } catch (const ModelError& error) {
    refuse("messages", error.what(), "chat_template");
  }
  return text;
}

FinishedText from_texts(RequestFields& fields) {
  const std::string old = fields.text("answer").value_or("");  // deprecated name
  return {.prompt = *fields.text("prompt"), .completion = fields.text("completion").value_or(old)};
}

struct Ids {
  std::vector<uint32_t> all;
  size_t prompt = 0;
};

/// The tokens of both texts as the model has them when it continues the prompt: where the tokens of
/// the whole text do not begin with the prompt's, both texts are encoded apart.
Ids ids_of(const FinishedText& text, const Tokenizer& tokenizer) {
  const EncodeOptions options = {.add_special = text.add_special,
                                 .parse_special = text.parse_special};
  const std::vector<int32_t> prompt = tokenizer.encode(text.prompt, options);
  std::vector<int32_t> all = tokenizer.encode(text.prompt + text.completion, options);
  if (all.size() < prompt.size() || !std::equal(prompt.begin(), prompt.end(), all.begin())) {
    all = prompt;
    const std::vector<int32_t> completion =
        tokenizer.encode(text.completion, {.add_special = false, .parse_special = false});
    all.insert(all.end(), completion.begin(), completion.end());
  }
  return {{all.begin(), all.end()}, prompt.size()};
}

}  // namespace

HttpResponse show_attention(const Service& service, const HttpRequest& request) {
  RequestFields fields(request.body);
  const ModelChoice choice =
      choose_model(service.engine, fields.text("model").value_or(""), Capability::kContinueText);
  ServedModel& model = choice.model;
  if (fields.find("messages") && fields.find("prompt"))
    refuse("prompt", "give messages, or prompt and completion");
  if (!fields.find("messages") && !fields.text("prompt"))
    refuse("messages", "messages are missing, or prompt and completion");
  const FinishedText text =
      fields.find("messages") ? from_messages(fields, model) : from_texts(fields);
  BatchAttentionOptions options;
  options.adapters = choice.adapters(read_adapters(fields));
  if (const auto layer = fields.whole("layer", 0, model.layers - 1))
    options.layer = static_cast<uint32_t>(*layer);
  const std::string heads = fields.text("heads").value_or("mean");
  if (heads != "mean" && heads != "each") refuse("heads", "heads must be mean or each");
  options.mean = heads == "mean";
  const std::string format = fields.text("format").value_or("json");
  if (format != "json" && format != "packed" && format != "html")
    refuse("format", "format must be json, packed or html");
  fields.finish();

  const Ids ids = ids_of(text, *model.tokenizer);
  const uint32_t most = std::min(service.attention_tokens, model.context);
  if (ids.all.size() > most)
    refuse("messages",
           fmt::format("the attention of {} tokens is asked for, this server shows that of {} at "
                       "most (--attention-tokens)",
                       ids.all.size(), most),
           "context_length_exceeded");
  std::optional<TokenAttention> found;
  service.engine.call(
      [&](const std::atomic<bool>& cancel) {
        options.cancel = &cancel;
        options.between = [&] { service.engine.go_on(); };
        found = model.generator->attention(ids.all, options);
      },
      request.gone);
  SentenceMaps maps = maps_of_text(std::move(*found), ids.prompt, !options.layer);
  maps.source_text = text.prompt;
  maps.target_text = text.completion;
  maps.model = choice.name();
  maps.device = model.device;
  if (format == "html") return {.type = "text/html; charset=utf-8", .body = to_html(maps)};
  return {.body = format == "json" ? to_json(maps) : to_packed_json(maps)};
}

}  // namespace mulciber::apps::serve
