#include "apps/serve/api/completion_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "apps/serve/api/images.h"
#include "checkpoints/json.h"
#include "mulciber/error.h"
#include "text/token_stream.h"

namespace mulciber::apps::serve {
namespace {

std::string render(const ChatTemplate& chat_template, const CompletionRequest& request,
                   const std::string& messages, const std::string& tools) {
  try {
    return chat_template.render_json(
        messages,
        {.tools_json = tools, .variables = request.template_variables, .now = std::nullopt});
  } catch (const ModelError& error) {
    refuse(request.messages_field, error.what(), "chat_template");
  }
}

Prompt chat_prompt(const ServedModel& model, const CompletionRequest& request) {
  if (!model.chat_template)
    refuse("model",
           fmt::format("the model '{}' has no chat template: ask /v1/completions, or start the "
                       "server with --template",
                       model.id),
           "no_chat_template");
  const ChatTemplate& chat_template = *model.chat_template;
  // A template writes special tokens itself, unless it is one of plain text.
  TakenImages taken = take_images(model, request.messages, request.messages_field);
  const std::string messages = taken.messages.dump();
  Prompt prompt = {.text = render(chat_template, request, messages, request.tools_json),
                   .add_special = chat_template.plain(),
                   .parse_special = !chat_template.plain() || !taken.images.empty()};
  if (!request.tools_json.empty() && prompt.text == render(chat_template, request, messages, ""))
    refuse("tools", fmt::format("the chat template of '{}' takes no tools", model.id),
           "unsupported_parameter");
  try {
    prompt.text = expand_prompt(*model.files, prompt.text, taken.images);
  } catch (const ModelError& error) {
    refuse(request.messages_field, error.what());
  }
  prompt.images = std::move(taken.images);
  return prompt;
}

/// A prompt of ids is taken as it is: special tokens that a tokenizer puts before a text are not
/// added.
Prompt given_prompt(const ServedModel& model, const TextOrIds& given) {
  if (given.ids.empty()) return {.text = given.text};
  const Tokenizer& tokenizer = *model.tokenizer;
  check_ids(model, "prompt", given.ids);
  const std::vector<int32_t> ids(given.ids.begin(), given.ids.end());
  const std::vector<int32_t> nothing = tokenizer.encode("", {.parse_special = true});
  const auto begin = std::ranges::mismatch(nothing, ids).in2;
  return {.text = written_text(tokenizer, std::span(begin, ids.end()), false), .ids = given.ids};
}

std::vector<TextJob> jobs_of(const CompletionsAsked& asked, const CompletionSettings& settings) {
  ServedModel& model = asked.model;
  const CompletionRequest& request = asked.request;
  for (const auto& [id, bias] : request.logit_bias)
    if (id >= model.vocabulary)
      refuse("logit_bias",
             fmt::format("logit_bias: the model has {} tokens, and {} is none of them",
                         model.vocabulary, id));
  BatchRequest common;
  common.sampling = chosen_sampling(request.sampling, model.default_sampling);
  common.max_new_tokens = request.max_tokens;
  if (settings.most_tokens > 0 &&
      (common.max_new_tokens == 0 || common.max_new_tokens > settings.most_tokens))
    common.max_new_tokens = settings.most_tokens;
  common.stop = request.stop;
  if (request.chat)
    common.stop.insert(common.stop.end(), model.chat_template->stops().begin(),
                       model.chat_template->stops().end());
  common.ignore_end = request.ignore_end;
  common.reuse_completions = settings.reuse_completions;
  common.prompt_lookup = request.prompt_lookup.value_or(settings.prompt_lookup);
  if (request.draft.value_or(false) && !model.draft)
    refuse("draft", "draft: the model is served without a draft model");
  common.draft = request.draft.value_or(true);
  common.draft_tokens = request.draft_tokens.value_or(settings.draft_tokens);
  common.logit_bias = request.logit_bias;
  common.grammar = request.grammar;
  common.adapters = asked.adapters;
  common.log_probabilities = request.log_probabilities;
  std::vector<TextJob> jobs;
  for (const Prompt& prompt : asked.prompts) {
    common.prompt_ids = prompt.ids;
    common.images = prompt.images;
    for (uint32_t i = 0; i < request.drawn(); ++i) {
      // Completions of one prompt use different random numbers, and so do those to equal prompts.
      common.stream = static_cast<uint32_t>(jobs.size());
      jobs.push_back({&model, common, static_cast<uint32_t>(jobs.size())});
    }
  }
  return jobs;
}

}  // namespace

CompletionReader::CompletionReader(std::unique_ptr<CompletionSession> session, ToolCallReader tools,
                                   size_t choices)
    : session_(std::move(session)),
      fresh_(std::move(tools)),
      tools_(choices, fresh_),
      told_(choices, false) {}

/// The next part, with tool calls taken out of its text.
std::optional<CompletionPart> CompletionReader::take() {
  std::optional<CompletionPart> part = session_->next();
  if (!part) return part;
  ToolCallReader& tools = tools_[part->choice];
  if (part->again) {
    tools = fresh_;
    return part;
  }
  const bool had_enough = tools.enough();
  part->text = tools.push(part->text);
  if (tools.enough() && !had_enough) session_->end(part->choice);
  if (!part->finish_reason.empty()) {
    part->text += tools.finish();
    if (tools.called()) part->finish_reason = "tool_calls";
  }
  part->calls = tools.take();
  return part;
}

std::optional<CompletionPart> CompletionReader::next() {
  while (std::optional<CompletionPart> part = take()) {
    if (part->again && told_[part->choice])
      throw ApiError(503, "the device was lost while the answer was sent: ask again", "",
                     "device_lost");
    const bool news = !part->text.empty() || !part->finish_reason.empty() || !part->calls.empty() ||
                      (part->tokens && !part->tokens->empty());
    if (!news) continue;
    told_[part->choice] = true;
    return part;
  }
  return std::nullopt;
}

std::vector<CompletionPart> CompletionReader::whole() {
  std::vector<CompletionPart> parts(tools_.size());
  while (std::optional<CompletionPart> part = take()) {
    CompletionPart& all = parts[part->choice];
    if (part->again) {
      all = {};
      continue;
    }
    all.choice = part->choice;
    all.text += part->text;
    if (part->tokens) {
      if (!all.tokens) all.tokens.emplace();
      std::ranges::move(*part->tokens, std::back_inserter(*all.tokens));
    }
    add_pieces(all.calls, part->calls);
    all.finish_reason = part->finish_reason;
  }
  return parts;
}

std::vector<Prompt> prompts_of(const ServedModel& model, const CompletionRequest& request) {
  std::vector<Prompt> prompts;
  if (request.chat) {
    prompts.push_back(chat_prompt(model, request));
  } else {
    for (const TextOrIds& given : request.prompts) prompts.push_back(given_prompt(model, given));
  }
  const uint32_t least = request.prompts_only ? 0 : std::max(request.max_tokens, 1u);
  for (Prompt& prompt : prompts) {
    std::vector<uint32_t>& ids = prompt.ids;
    if (ids.empty()) {
      const std::vector<int32_t> read = model.tokenizer->encode(
          prompt.text, {.add_special = prompt.add_special, .parse_special = prompt.parse_special});
      ids.assign(read.begin(), read.end());
    }
    const char* field = request.chat ? request.messages_field : "prompt";
    if (ids.empty()) refuse(field, fmt::format("{} has no tokens", field));
    if (ids.size() + least > model.context)
      refuse(field,
             fmt::format("the model's context is {} tokens, and {} of the prompt with {} of the "
                         "answer are more",
                         model.context, ids.size(), least),
             "context_length_exceeded");
  }
  return prompts;
}

std::shared_ptr<CompletionReader> begin_completions(const CompletionsAsked& asked,
                                                    const HttpRequest& http, Engine& engine,
                                                    Metrics& metrics,
                                                    const CompletionSettings& settings) {
  const CompletionRequest& request = asked.request;
  std::vector<TextJob> jobs = jobs_of(asked, settings);
  const size_t choices = jobs.size();
  SessionSettings session = {.choices = static_cast<uint32_t>(choices),
                             .completions_per_prompt = request.drawn(),
                             .probabilities = request.log_probabilities.has_value(),
                             .before = {},
                             .most_time = std::chrono::seconds(settings.most_seconds)};
  for (size_t i = 0; request.echo && i < choices; ++i) {
    session.before.push_back(asked.prompts[i / request.drawn()].text);
    if (!asked.tokens_before.empty())
      session.tokens_before.push_back(asked.tokens_before[i / request.drawn()]);
  }
  auto reader = std::make_unique<CompletionSession>(
      engine.submit(std::move(jobs)), asked.model.tokenizer, session, http.gone, metrics);
  return std::make_shared<CompletionReader>(
      std::move(reader), ToolCallReader(tool_schemas(request.tools_json), request.one_call),
      choices);
}

}  // namespace mulciber::apps::serve
