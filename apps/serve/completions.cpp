#include "apps/serve/completions.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "apps/serve/answer_session.h"
#include "apps/serve/model_choice.h"
#include "apps/serve/tool_calls.h"
#include "checkpoints/json.h"
#include "mulciber/error.h"

namespace mulciber::apps::serve {
namespace {

/// A prompt as the model gets it.
struct Prompt {
  std::string text;
  bool add_special = true, parse_special = true;
  size_t tokens = 0;
};

std::string render(const ChatTemplate& chat_template, const CompletionRequest& request,
                   const std::string& tools) {
  try {
    return chat_template.render_json(
        request.messages_json,
        {.tools_json = tools, .variables = request.template_variables, .now = std::nullopt});
  } catch (const ModelError& error) {
    refuse("messages", error.what(), "chat_template");
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
  // A template writes the special tokens itself, but for one of plain text.
  Prompt prompt = {.text = render(chat_template, request, request.tools_json),
                   .add_special = chat_template.plain(),
                   .parse_special = !chat_template.plain()};
  if (!request.tools_json.empty() && prompt.text == render(chat_template, request, ""))
    refuse("tools", fmt::format("the chat template of '{}' takes no tools", model.id),
           "unsupported_parameter");
  return prompt;
}

std::vector<Prompt> prompts_of(const ServedModel& model, const CompletionRequest& request) {
  std::vector<Prompt> prompts;
  if (request.chat) {
    prompts.push_back(chat_prompt(model, request));
  } else {
    for (const std::string& text : request.prompts) prompts.push_back({.text = text});
  }
  for (Prompt& prompt : prompts) {
    prompt.tokens = model.tokenizer
                        ->encode(prompt.text, {.add_special = prompt.add_special,
                                               .parse_special = prompt.parse_special})
                        .size();
    const char* field = request.chat ? "messages" : "prompt";
    if (prompt.tokens == 0) refuse(field, fmt::format("{} has no tokens", field));
    if (prompt.tokens + std::max(request.max_tokens, 1u) > model.context)
      refuse(field,
             fmt::format("the model's context is {} tokens, and {} of the prompt with {} of the "
                         "answer are more",
                         model.context, prompt.tokens, std::max(request.max_tokens, 1u)),
             "context_length_exceeded");
  }
  return prompts;
}

std::vector<TextJob> jobs_of(ServedModel& model, const CompletionRequest& request,
                             const std::vector<Prompt>& prompts,
                             const CompletionSettings& settings) {
  Sampling sampling = chosen_sampling(request.sampling, model.default_sampling);
  for (const auto& [id, bias] : request.logit_bias)
    if (id >= model.vocabulary)
      refuse("logit_bias",
             fmt::format("logit_bias: the model has {} tokens, and {} is none of them",
                         model.vocabulary, id));
  BatchRequest common;
  common.sampling = sampling;
  common.max_new_tokens = request.max_tokens;
  if (settings.most_tokens > 0 &&
      (common.max_new_tokens == 0 || common.max_new_tokens > settings.most_tokens))
    common.max_new_tokens = settings.most_tokens;
  common.stop = request.stop;
  if (request.chat)
    common.stop.insert(common.stop.end(), model.chat_template->stops().begin(),
                       model.chat_template->stops().end());
  common.ignore_end = request.ignore_end;
  common.logit_bias = request.logit_bias;
  common.grammar = request.grammar;
  common.log_probabilities = request.log_probabilities;
  std::vector<TextJob> jobs;
  for (const Prompt& prompt : prompts) {
    common.prompt = prompt.text;
    common.add_special = prompt.add_special;
    common.parse_special = prompt.parse_special;
    for (uint32_t i = 0; i < request.n; ++i) {
      // Answers to one prompt differ by chance, and so do those to prompts that are the same.
      common.stream = static_cast<uint32_t>(jobs.size());
      jobs.push_back({&model, common, static_cast<uint32_t>(jobs.size())});
    }
  }
  return jobs;
}

/// What is sent or kept of a request's answers, with calls of tools taken out of the text.
class Answers {
 public:
  Answers(const CompletionRequest& request, AnswerFormat format,
          std::unique_ptr<AnswerSession> session, size_t choices)
      : include_usage_(request.include_usage),
        format_(std::move(format)),
        session_(std::move(session)),
        tools_(choices, ToolCallReader(tool_names(request.tools_json))),
        first_(choices, true) {}

  std::optional<AnswerPart> next() {
    std::optional<AnswerPart> part = session_->next();
    if (!part) return part;
    ToolCallReader& tools = tools_[part->choice];
    part->text = tools.push(part->text);
    if (!part->finish_reason.empty()) {
      part->text += tools.finish();
      part->calls = tools.calls();
      if (!part->calls.empty()) part->finish_reason = "tool_calls";
    }
    return part;
  }

  HttpAnswer whole(size_t choices) {
    std::vector<AnswerPart> parts(choices);
    while (std::optional<AnswerPart> part = next()) {
      AnswerPart& all = parts[part->choice];
      all.choice = part->choice;
      all.text += part->text;
      if (part->tokens) {
        if (!all.tokens) all.tokens.emplace();
        std::ranges::move(*part->tokens, std::back_inserter(*all.tokens));
      }
      all.calls = std::move(part->calls);
      all.finish_reason = part->finish_reason;
    }
    return {.body = json_line(format_.whole(parts, session_->usage())) + "\n"};
  }

  void stream(const BodyWriter& write) {
    const auto send = [&](const Json& object) {
      return write("data: " + json_line(object) + "\n\n");
    };
    try {
      while (std::optional<AnswerPart> part = next()) {
        const bool first = first_[part->choice];
        first_[part->choice] = false;
        const bool nothing = part->text.empty() && part->finish_reason.empty() &&
                             !(part->tokens && !part->tokens->empty());
        if (!first && nothing) continue;
        if (!send(format_.chunk(*part, first, include_usage_))) return;
      }
      if (include_usage_) send(format_.usage_chunk(session_->usage()));
    } catch (const ClientGone&) {
      return;  // the engine is told by the session's end
    } catch (const std::exception& error) {
      // The status is sent already; clients look for an object with an error.
      write("data: " + to_api_error(error).json() + "\n\n");
    }
    write("data: [DONE]\n\n");
  }

 private:
  bool include_usage_;
  AnswerFormat format_;
  std::unique_ptr<AnswerSession> session_;
  std::vector<ToolCallReader> tools_;
  std::vector<bool> first_;
};

}  // namespace

HttpAnswer answer_completion(const CompletionRequest& request, const HttpRequest& http,
                             Engine& engine, Metrics& metrics, const CompletionSettings& settings) {
  ServedModel& model = choose_model(engine, request.model, Capability::kContinueText);
  const std::vector<Prompt> prompts = prompts_of(model, request);
  std::vector<TextJob> jobs = jobs_of(model, request, prompts, settings);
  const size_t choices = jobs.size();

  SessionSettings session = {.choices = static_cast<uint32_t>(choices),
                             .answers_per_prompt = request.n,
                             .probabilities = request.log_probabilities.has_value(),
                             .before = {},
                             .most_time = std::chrono::seconds(settings.most_seconds)};
  if (request.echo)
    for (size_t i = 0; i < choices; ++i) session.before.push_back(request.prompts[i / request.n]);
  AnswerFormat format = {.chat = request.chat,
                         .id = (request.chat ? "chatcmpl-" : "cmpl-") + http.id,
                         .model = model.id,
                         .created = std::time(nullptr)};
  auto reader = std::make_unique<AnswerSession>(engine.submit(std::move(jobs)), model.tokenizer,
                                                session, http.gone, metrics);
  AnswerSession& waiting = *reader;
  const auto answers =
      std::make_shared<Answers>(request, std::move(format), std::move(reader), choices);
  if (!request.stream) return answers->whole(choices);
  waiting.wait_for_first();
  return {.type = "text/event-stream", .body = {}, .stream = [answers](const BodyWriter& write) {
            answers->stream(write);
          }};
}

}  // namespace mulciber::apps::serve
