#include "apps/serve/api/completions.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>
#include <nlohmann/json.hpp>
#include <utility>

#include "apps/serve/api/model_choice.h"
#include "checkpoints/json.h"
#include "mulciber/error.h"

namespace mulciber::apps::serve {
namespace {

/// The tokens of a prompt with their probabilities, except for the special tokens before it.
std::vector<TokenRecord> score_prompt(const CompletionsAsked& asked, const Prompt& prompt,
                                      const HttpRequest& http, Engine& engine) {
  const ServedModel& model = asked.model;
  ScoreOptions options = {.likeliest = *asked.request.log_probabilities,
                          .adapters = asked.adapters};
  TextScore score;
  engine.call(
      [&](const std::atomic<bool>& cancel) {
        const std::array input = {ScoreInput{.ids = prompt.ids}};
        options.cancel = &cancel;
        score = std::move(model.generator->score(input, options).texts[0]);
      },
      http.gone);
  const std::vector<int32_t> nothing = model.tokenizer->encode("", {.parse_special = true});
  size_t first = 0;
  while (first < std::min(nothing.size(), score.ids.size()) &&
         static_cast<uint32_t>(nothing[first]) == score.ids[first])
    ++first;
  std::vector<TokenRecord> records;
  TokenTexts texts(model.tokenizer);
  if (first == 0) records.push_back(texts.next(score.ids[0], std::nullopt, {}));
  for (const TokenScore& token : score.tokens)
    records.push_back(
        texts.next(token.id, static_cast<float>(token.log_probability), token.likeliest));
  return records;
}

/// Answers with the prompts alone, which the model reads and does not continue.
std::vector<CompletionPart> echoed(const CompletionsAsked& asked) {
  const std::vector<std::vector<TokenRecord>>& tokens = asked.tokens_before;
  std::vector<CompletionPart> parts;
  for (size_t i = 0; i < asked.prompts.size(); ++i) {
    for (uint32_t n = 0; n < asked.request.n; ++n) {
      CompletionPart part;
      part.choice = static_cast<uint32_t>(parts.size());
      part.text = asked.prompts[i].text;
      if (!tokens.empty()) part.tokens = tokens[i];
      part.finish_reason = "length";
      parts.push_back(std::move(part));
    }
  }
  return parts;
}

float mean_log_probability(const CompletionPart& part, size_t prompt_tokens) {
  float sum = 0;
  const size_t count = part.tokens->size() - std::min(prompt_tokens, part.tokens->size());
  for (size_t i = part.tokens->size() - count; i < part.tokens->size(); ++i)
    sum += (*part.tokens)[i].log_probability.value_or(0);
  return count > 0 ? sum / static_cast<float>(count) : -INFINITY;
}

/// The n completions to each prompt whose tokens are the likeliest on average.
std::vector<CompletionPart> best(const CompletionRequest& request,
                                 std::vector<CompletionPart> parts,
                                 const std::vector<std::vector<TokenRecord>>& before) {
  std::vector<CompletionPart> chosen;
  for (size_t prompt = 0; prompt < request.prompts.size(); ++prompt) {
    const auto begin = parts.begin() + static_cast<std::ptrdiff_t>(prompt * request.drawn());
    const size_t skipped = before.empty() ? 0 : before[prompt].size();
    std::ranges::stable_sort(
        begin, begin + request.drawn(), std::ranges::greater(),
        [&](const CompletionPart& part) { return mean_log_probability(part, skipped); });
    for (uint32_t i = 0; i < request.n; ++i) {
      CompletionPart& part = chosen.emplace_back(std::move(begin[i]));
      part.choice = static_cast<uint32_t>(chosen.size() - 1);
      if (!request.tells_probabilities) part.tokens.reset();
    }
  }
  return chosen;
}

void stream_completions(CompletionReader& completions, const CompletionFormat& format,
                        bool include_usage, const BodyWriter& write) {
  const auto send = [&](const Json& object) {
    return write("data: " + json_line(object) + "\n\n");
  };
  try {
    std::vector<bool> first;
    while (std::optional<CompletionPart> part = completions.next()) {
      first.resize(std::max<size_t>(first.size(), part->choice + 1), true);
      if (!send(format.chunk(*part, first[part->choice], include_usage))) return;
      first[part->choice] = false;
    }
    if (include_usage) send(format.usage_chunk(completions.usage()));
  } catch (const ClientGone&) {
    return;  // the session's end cancels the completions in the engine
  } catch (const std::exception& error) {
    // The status is sent already; clients look for an object with an error.
    write("data: " + to_api_error(error).json() + "\n\n");
  }
  write("data: [DONE]\n\n");
}

}  // namespace

HttpResponse create_completion(const CompletionRequest& request, const HttpRequest& http,
                               Engine& engine, Metrics& metrics,
                               const CompletionSettings& settings) {
  const ModelChoice choice = choose_model(engine, request.model, Capability::kContinueText);
  const std::vector<Prompt> prompts = prompts_of(choice.model, request);
  const std::vector<AdapterScale> adapters = choice.adapters(request.adapters);
  CompletionsAsked asked = {choice.model, request, prompts, adapters};
  if (request.echo && request.tells_probabilities)
    for (const Prompt& prompt : prompts)
      asked.tokens_before.push_back(score_prompt(asked, prompt, http, engine));
  CompletionFormat format = {.chat = request.chat,
                             .id = (request.chat ? "chatcmpl-" : "cmpl-") + http.id,
                             .model = choice.name(),
                             .created = std::time(nullptr)};
  if (request.prompts_only) {
    Usage usage;
    for (const Prompt& prompt : prompts) usage.prompt_tokens += prompt.ids.size();
    return {.body = json_line(format.whole(echoed(asked), usage)) + "\n"};
  }
  const std::shared_ptr<CompletionReader> completions =
      begin_completions(asked, http, engine, metrics, settings);
  if (!request.stream) {
    std::vector<CompletionPart> parts = completions->whole();
    if (request.drawn() != request.n) parts = best(request, std::move(parts), asked.tokens_before);
    return {.body = json_line(format.whole(parts, completions->usage())) + "\n"};
  }
  completions->wait_for_first();
  const bool include_usage = request.include_usage;
  return {.type = "text/event-stream",
          .body = {},
          .stream = [completions, format, include_usage](const BodyWriter& write) {
            stream_completions(*completions, format, include_usage, write);
          }};
}

}  // namespace mulciber::apps::serve
