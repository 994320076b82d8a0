// Scores and hidden states of given texts.
#include "models/generation/text_scoring.h"

#include <algorithm>
#include <bit>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "models/generation/text_generator_impl.h"
#include "mulciber/error.h"

namespace mulciber {
namespace {

struct CutInput {
  std::vector<uint32_t> ids;
  uint32_t first = 0;  // number of the first that is scored
};

/// Tokens of an input, and where its text begins among them.
CutInput cut(const Tokenizer& tokenizer, const ScoreInput& input, const ScoreOptions& options) {
  const EncodeOptions encode = {.add_special = options.add_special,
                                .parse_special = options.parse_special};
  std::vector<int32_t> whole(input.ids.begin(), input.ids.end());
  if (whole.empty()) whole = tokenizer.encode(input.context + input.text, encode);
  CutInput result = {{whole.begin(), whole.end()}, 0};
  if (input.ids.empty() && !input.context.empty()) {
    const size_t end = input.context.find_last_not_of(' ') + 1;
    const size_t before = tokenizer.encode(input.context.substr(0, end), encode).size();
    result.first = static_cast<uint32_t>(std::min(before, whole.size()));
  } else {
    const std::vector<int32_t> nothing = tokenizer.encode("", encode);
    result.first =
        static_cast<uint32_t>(std::ranges::mismatch(nothing, whole).in1 - nothing.begin());
  }
  return result;
}

}  // namespace

TokenScorer& scorer_of(const TextScoring& by, size_t tokens) {
  std::optional<TokenScorer>& scorer = by.scorer;
  const uint32_t context = by.context;
  if (scorer && scorer->context() >= tokens) return *scorer;
  scorer.reset();
  // The context is rounded up to a power of two, so that few texts need another scorer.
  const auto wanted = static_cast<uint32_t>(
      std::min<size_t>(std::max<size_t>(std::bit_ceil(tokens), 256), context));
  const DecoderNetwork& network = by.generator.language->network();
  // With room for the whole context, LongRoPE has the same angles as in such a conversation.
  const uint32_t original = network.decoder.original_context();
  return scorer.emplace(*by.generator.device, network, wanted,
                        original > 0 && context > original ? original + 1 : 0);
}

TextScores score_texts(const TextScoring& by, std::span<const ScoreInput> inputs,
                       const ScoreOptions& options) {
  const auto start = Clock::now();
  std::vector<CutInput> texts;
  size_t longest = 1;
  for (const ScoreInput& input : inputs) {
    texts.push_back(cut(*by.generator.tokenizer, input, options));
    const CutInput& text = texts.back();
    const auto refuse = [&](std::string problem, const char* remedy) {
      throw ModelError(fmt::format("text {} of {}", texts.size(), inputs.size()),
                       std::move(problem), remedy);
    };
    if (text.first == text.ids.size())
      refuse("has no tokens to score", "give some text; spaces may belong to the token before");
    if (text.ids.size() > by.context)
      refuse(fmt::format("has {} tokens, the context {}", text.ids.size(), by.context),
             "cut it into parts, or load the model with a larger context");
    longest = std::max(longest, text.ids.size());
  }
  TextScores result;
  result.texts.resize(texts.size());
  if (texts.empty()) return result;
  TokenScorer& scorer = scorer_of(by, longest);
  scorer.use_adapters(chosen_adapters(by.generator.language->network(), options.adapters));
  ScoreStatistics& statistics = result.statistics;
  const ScoreStatistics before = {.read_tokens = scorer.read_tokens(),
                                  .reused_tokens = scorer.reused_tokens(),
                                  .build_seconds = scorer.build_seconds()};
  for (size_t i = 0; i < texts.size(); ++i) {
    if (options.cancel && options.cancel->load()) break;
    TextScore& score = result.texts[i];
    // The first token has no token before it.
    score.tokens = scorer.score(texts[i].ids, std::max(texts[i].first, 1u),
                                {.likeliest = options.likeliest, .ranks = options.ranks});
    score.ids = std::move(texts[i].ids);
    for (const TokenScore& token : score.tokens) score.sum += token.log_probability;
    score.complete = true;
    statistics.scored_tokens += score.tokens.size();
    if (options.progress) options.progress(i + 1, texts.size());
  }
  statistics.read_tokens = scorer.read_tokens() - before.read_tokens;
  statistics.reused_tokens = scorer.reused_tokens() - before.reused_tokens;
  statistics.build_seconds = scorer.build_seconds() - before.build_seconds;
  statistics.total_seconds = seconds_since(start);
  return result;
}

TextScores TextGenerator::score(std::span<const ScoreInput> inputs, const ScoreOptions& options) {
  return score_texts({*impl_, impl_->context, impl_->scorer}, inputs, options);
}

HiddenStates TextGenerator::hidden_states(const std::string& text, std::span<const uint32_t> layers,
                                          const ScoreOptions& options) {
  Impl& impl = *impl_;
  HiddenStates result = {
      .ids = cut(*impl.tokenizer, {"", text}, options).ids, .width = width(), .values = {}};
  if (result.ids.size() > impl.context)
    throw ModelError("text",
                     fmt::format("has {} tokens, the context {}", result.ids.size(), impl.context),
                     "cut it into parts, or load the model with a larger context");
  TokenScorer& scorer =
      scorer_of({impl, impl.context, impl.scorer}, std::max<size_t>(result.ids.size(), 1));
  scorer.use_adapters(chosen_adapters(impl.language->network(), options.adapters));
  result.values = scorer.states(result.ids, layers);
  return result;
}

}  // namespace mulciber
