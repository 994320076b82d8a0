// TextGenerator::generate() with draft tokens: speculative decoding.
#include <algorithm>

#include <fmt/format.h>

#include "base/clock.h"
#include "models/core/vocabulary_check.h"
#include "models/generation/completion.h"
#include "models/generation/context_shift.h"
#include "models/generation/text_generator_impl.h"
#include "mulciber/error.h"

namespace mulciber {
namespace {

constexpr uint32_t kFirstDraft = 4;  // draft tokens of a draft model at first

bool has_penalties(const Sampling& sampling) {
  return sampling.repetition_penalty != 1 || sampling.presence_penalty != 0 ||
         sampling.frequency_penalty != 0;
}

}  // namespace

/// Draft tokens behind a text, from a draft model or by prompt lookup. Their number from a draft
/// model grows while all are accepted, because each costs it a step. Source: transformers'
/// heuristic for assisted generation.
class TextGenerator::Impl::Drafter {
 public:
  Drafter(const GenerateOptions& options, Impl* draft, uint32_t vocabulary)
      : options_(options),
        draft_(draft),
        vocabulary_(vocabulary),
        most_(options.draft_tokens > 0 ? options.draft_tokens : kMostDraftTokens),
        drafted_(options.draft_tokens > 0 ? options.draft_tokens : kFirstDraft) {}

  std::vector<uint32_t> draft(const std::vector<uint32_t>& ids, uint32_t most,
                              const Sampling& sampling, uint32_t stream) {
    by_draft_ = 0;
    most = std::min(most, most_);
    std::vector<uint32_t> found;
    if (most == 0) return found;
    if (draft_) found = by_model(ids, std::min(most, drafted_), sampling, stream);
    by_draft_ = found.size();
    if (found.empty() && options_.prompt_lookup > 0)
      found = prompt_lookup(ids, options_.prompt_lookup, most);
    return found;
  }

  void taken(size_t count) {
    if (by_draft_ == 0 || options_.draft_tokens > 0) return;
    drafted_ = count == by_draft_ ? std::min(drafted_ + 2, most_) : std::max(drafted_, 2u) - 1;
  }

 private:
  /// Drafts by the draft model, which chooses with the same settings and random numbers.
  std::vector<uint32_t> by_model(const std::vector<uint32_t>& ids, uint32_t most,
                                 const Sampling& sampling, uint32_t stream) {
    if (ids.size() + most > draft_->context) return {};
    // The model may have chosen a row that belongs to no token, which the draft model may not have.
    const uint32_t known = draft_->language->network().vocabulary;
    if (std::ranges::any_of(ids, [&](uint32_t id) { return id >= known; })) return {};
    SequenceRequest request;
    request.prompts.resize(1);
    request.sampling = {sampling};
    request.streams = {stream};
    request.max_new_tokens = most;
    draft_->reuse(request, ids);
    std::vector<uint32_t> found = draft_->batch->generate(request).rows[0].ids;
    // A vocabulary may be padded with rows that belong to no token.
    found.erase(std::ranges::find_if(found, [&](uint32_t id) { return id >= vocabulary_; }),
                found.end());
    return found;
  }

  const GenerateOptions& options_;
  Impl* draft_;
  uint32_t vocabulary_, most_, drafted_;
  size_t by_draft_ = 0;  // draft tokens that came from the draft model last
};

void TextGenerator::Impl::check_draft(const Impl& draft) {
  const auto refuse = [](std::string problem, const char* remedy) {
    throw ModelError("draft model", std::move(problem), remedy);
  };
  if (&draft == this)
    refuse("is the model itself", "take a smaller one, or TextGenerator::conversation()");
  if (draft.batch->shape().rows != 1)
    refuse("was loaded for several texts", "load it with GeneratorOptions::sequences of 1");
  draft.batch->require_free();
  if (draft.tokenizer == tokenizer || draft.tokenizer == checked_draft) return;
  check_same_tokens(*tokenizer, *draft.tokenizer);
  checked_draft = draft.tokenizer;
}

void TextGenerator::Impl::take_in(SequenceRequest& request, std::vector<uint32_t> ids) {
  ids.pop_back();  // the last token is fed by the first check
  batch->use_adapters(0, request.adapters);
  const auto common = std::ranges::mismatch(ids, batch->ids(0));
  const auto held = static_cast<uint32_t>(common.in1 - ids.begin());
  batch->truncate(0, held);
  if (statistics.prompt_tokens == 0) statistics.reused_tokens = held;
  if (held == ids.size()) return;
  request.prompts[0].assign(ids.begin() + held, ids.end());
  request.max_new_tokens = 0;
  const SequenceResult found = batch->generate(request);
  statistics.build_seconds += found.build_seconds;
  statistics.prefill_seconds += found.prefill_seconds;
}

Generation TextGenerator::Impl::speculate(const std::vector<int32_t>& encoded,
                                          const GenerateOptions& options) {
  const uint32_t rows = batch->shape().rows;
  // The mask of a grammar depends on the token before, and draft tokens are verified together here.
  if (options.attention || options.grammar || rows != 1)
    throw SettingError("GenerateOptions::prompt_lookup and draft",
                       options.attention ? "are asked for together with attention"
                       : options.grammar ? "are asked for together with a grammar"
                                         : "are asked for of a model loaded for several texts",
                       "leave one of them out");
  const auto keeps_states = [](const Impl& impl) {
    return impl.language->network().decoder.keeps_states();
  };
  if (keeps_states(*this) || (options.draft && keeps_states(*options.draft->impl_)))
    throw SettingError("GenerateOptions::prompt_lookup and draft",
                       "are asked for of a model whose layers keep a state, which cannot be taken "
                       "back when a draft token is rejected",
                       "leave them out, and take a draft model with attention");
  if (options.draft_tokens > kMostDraftTokens)
    throw SettingError("GenerateOptions::draft_tokens", fmt::format("is {}", options.draft_tokens),
                       fmt::format("ask for at most {}", kMostDraftTokens));
  if (context < kCheckedTokens)
    throw SettingError("context", fmt::format("is {} tokens", context),
                       fmt::format("draft tokens are verified in passes of {}", kCheckedTokens));
  Impl* draft = options.draft ? options.draft->impl_.get() : nullptr;
  if (draft) check_draft(*draft);
  const auto start = Clock::now();
  const uint32_t keep = options.shift ? kept(encoded, options) : 0;
  SequenceRequest request = this->request(options);
  const Sampling sampling = request.sampling[0];
  const uint32_t window = has_penalties(sampling) ? std::min(sampling.penalty_window, context) : 0;
  if (!checker || checker->penalty_window() < window)
    checker.emplace(*device, language->network(), *batch, window);
  begin_count();
  statistics.build_seconds = seconds_since(start);

  std::vector<uint32_t> all(encoded.begin(), encoded.end());  // prompt and answer
  Completion answer(*tokenizer, encoded, options.stop, options.on_text);
  const uint64_t most = options.max_new_tokens > 0 ? options.max_new_tokens : UINT64_MAX;
  Drafter drafter(options, draft, language->network().vocabulary);
  const auto cancelled = [&] { return options.cancel && options.cancel->load(); };
  request.cancel = options.cancel;
  request.on_prompt = [&](size_t done, size_t total) {
    if (options.on_prompt) options.on_prompt(done, total);
  };
  std::optional<GenerateEnd> end;
  size_t gone = 0;
  while (!end) {
    std::vector<uint32_t> ids = options.shift ? shifted(all, keep, context) : all;
    gone = all.size() - ids.size();
    const bool first = all.size() == encoded.size();
    take_in(request, ids);
    if (first) statistics.prompt_tokens = ids.size();
    request.on_prompt = {};
    const auto decoding = Clock::now();
    while (!end && !cancelled() && ids.size() <= context) {
      const uint64_t left = most - (all.size() - encoded.size());
      const std::vector<uint32_t> drafted = drafter.draft(
          ids, static_cast<uint32_t>(std::min<uint64_t>(left - 1, context - ids.size())), sampling,
          request.streams[0]);
      const std::vector<uint32_t> chosen = checker->run({.ids = ids,
                                                         .drafted = drafted,
                                                         .sampling = sampling,
                                                         .stream = request.streams[0],
                                                         .adapters = request.adapters});
      ++statistics.decode_steps;
      statistics.draft_tokens += drafted.size();
      statistics.accepted_tokens += chosen.size() - 1;
      drafter.taken(chosen.size() - 1);
      if (statistics.first_token_seconds == 0)
        statistics.first_token_seconds = seconds_since(start);
      for (const uint32_t id : chosen) {
        ids.push_back(id);
        all.push_back(id);
        const bool ends = std::ranges::binary_search(request.stops, id);
        if (!answer.push(id, ends)) {
          end = GenerateEnd::kStopText;
        } else if (ends) {
          end = GenerateEnd::kEndOfText;
        } else if (all.size() - encoded.size() >= most) {
          end = GenerateEnd::kTokenLimit;
        }
        if (end) break;
      }
    }
    // Tokens that were accepted behind the end of the answer are dropped.
    batch->truncate(0, static_cast<uint32_t>(ids.size()) - 1);
    statistics.decode_seconds += seconds_since(decoding);
    if (cancelled()) break;
    if (!end && !options.shift) end = GenerateEnd::kContextFull;
    // Random numbers follow from the number of tokens, which falls at a context shift.
    ++request.streams[0];
  }
  statistics.new_tokens = all.size() - encoded.size();
  statistics.peak_device_bytes = device->memory().peak();
  Generation result = answer.finish(end.value_or(GenerateEnd::kCancelled), !end);
  result.left_out = gone;
  return result;
}

}  // namespace mulciber
