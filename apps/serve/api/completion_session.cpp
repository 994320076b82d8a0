#include "apps/serve/api/completion_session.h"

#include <fmt/format.h>

#include <utility>

#include "text/tokenizers/text.h"

namespace mulciber::apps::serve {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

}  // namespace

CompletionSession::CompletionSession(std::shared_ptr<CompletionChannel> channel,
                                     std::shared_ptr<const Tokenizer> tokenizer,
                                     const SessionSettings& settings, std::function<bool()> gone,
                                     Metrics& metrics)
    : channel_(std::move(channel)),
      tokenizer_(std::move(tokenizer)),
      settings_(settings),
      gone_(std::move(gone)),
      metrics_(metrics),
      open_(settings.choices) {
  for (uint32_t i = 0; i < settings.choices; ++i) choices_.push_back(new_choice(tokenizer_));
}

CompletionSession::Choice CompletionSession::new_choice(
    const std::shared_ptr<const Tokenizer>& tokenizer) {
  return {TokenTexts(tokenizer), {}, 0, false, {}};
}

CompletionSession::~CompletionSession() {
  if (open_ > 0) channel_->cancel();
}

CompletionEvent CompletionSession::wait() {
  // Interval of gone(). With many clients, more frequent calls would slow the engine down.
  constexpr std::chrono::milliseconds kLook(50);
  while (true) {
    if (gone_()) throw ClientGone{};
    if (Clock::now() - begin_ > settings_.most_time)
      throw ApiError(504,
                     fmt::format("the answer took longer than {} s", settings_.most_time.count()),
                     "", "timeout");
    if (std::optional<CompletionEvent> event = channel_->pop(kLook)) {
      if (event->error) throw *event->error;
      if (event->end == GenerateEnd::kCancelled)
        throw ApiError(503, "the answer was cancelled: the server is stopping", "", "unavailable");
      return std::move(*event);
    }
  }
}

void CompletionSession::wait_for_first() { first_ = wait(); }

std::optional<CompletionPart> CompletionSession::next() {
  while (open_ > 0) {
    CompletionEvent event = first_ ? *std::exchange(first_, std::nullopt) : wait();
    if (std::optional<CompletionPart> part = take(std::move(event))) return part;
  }
  return std::nullopt;
}

void CompletionSession::measure(Choice& choice) {
  if (choice.begun)
    metrics_.count_next_token(seconds_since(choice.latest));
  else
    metrics_.count_first_token(seconds_since(begin_));
  choice.latest = Clock::now();
}

/// The part of an event; nothing where no text became certain. Tokens with held-back text come with
/// that text.
std::optional<CompletionPart> CompletionSession::take(CompletionEvent event) {
  Choice& choice = choices_[event.choice];
  if (event.again) {
    choice = new_choice(tokenizer_);
    CompletionPart part;
    part.choice = event.choice;
    part.again = true;
    return part;
  }
  if (!event.end) measure(choice);
  if (event.token) choice.pending.push_back(choice.texts.next(event));
  if (event.piece.empty() && !event.end) {
    choice.begun = true;
    return std::nullopt;
  }
  CompletionPart part;
  part.choice = event.choice;
  const bool first = choice.offset == 0;
  if (first && event.choice < settings_.before.size()) part.text = settings_.before[event.choice];
  part.text += event.piece;
  part.text_offset = choice.offset;
  choice.offset += count_code_points(part.text);
  choice.begun = true;
  // Tokens that end a completion, and those of a stop text, are not part of it.
  const bool cut = event.end && event.piece.empty() && finish_reason(*event.end) == "stop";
  if (settings_.probabilities) {
    part.tokens.emplace();
    if (!cut) part.tokens = std::exchange(choice.pending, {});
    if (first && event.choice < settings_.tokens_before.size()) {
      const std::vector<TokenRecord>& before = settings_.tokens_before[event.choice];
      part.tokens->insert(part.tokens->begin(), before.begin(), before.end());
    }
  }
  if (event.end) {
    --open_;
    part.finish_reason = finish_reason(*event.end);
    usage_.completion_tokens += event.completion_tokens;
    usage_.draft_tokens += event.draft_tokens;
    usage_.accepted_tokens += event.accepted_tokens;
    if (event.choice % settings_.completions_per_prompt == 0) {
      usage_.prompt_tokens += event.prompt_tokens;
      usage_.cached_tokens += event.cached_tokens;
    }
  }
  return part;
}

}  // namespace mulciber::apps::serve
