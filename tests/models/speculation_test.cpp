// Speculative decoding: draft tokens change neither the answer's tokens nor their distribution.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "models/generation/draft_check.h"
#include "models/generation/token_scorer.h"
#include "mulciber/error.h"
#include "mulciber/text_generator.h"
#include "tests/catch.h"
#include "tests/device.h"
#include "tests/model_error.h"
#include "tests/small_decoder.h"
#include "tests/support.h"

using namespace mulciber;
using namespace mulciber::tests;
using Catch::Matchers::ContainsSubstring;

namespace {

using Ids = std::vector<uint32_t>;

/// A sequence of a model, and checks of draft tokens after it.
struct Checked {
  SequenceBatch batch;
  DraftCheck check;

  Checked(const DecoderModel& model, uint32_t context, uint32_t window = 0)
      : batch(shared_device(), model.network(), {1, context}),
        check(shared_device(), model.network(), batch, window) {}

  void take_in(const Ids& prompt) {
    batch.truncate(0, 0);
    batch.generate({.prompts = {Ids(prompt.begin(), prompt.end() - 1)}});
  }
};

/// The tokens after a prompt, with draft tokens that `draft` makes from the tokens so far.
template <typename Drafter>
Ids continued(Checked& with, const Ids& prompt, size_t count, const Sampling& sampling,
              const Drafter& draft) {
  with.take_in(prompt);
  Ids ids = prompt;
  while (ids.size() < prompt.size() + count) {
    const Ids drafted = draft(ids);
    const Ids chosen = with.check.run({.ids = ids, .drafted = drafted, .sampling = sampling});
    REQUIRE(chosen.size() <= drafted.size() + 1);
    CHECK(std::equal(chosen.begin(), chosen.end() - 1, drafted.begin()));
    ids.insert(ids.end(), chosen.begin(), chosen.end());
    CHECK(with.batch.length(0) == ids.size() - 1);
    CHECK(std::ranges::equal(with.batch.ids(0), std::span(ids).first(ids.size() - 1)));
  }
  return {ids.begin() + static_cast<std::ptrdiff_t>(prompt.size()),
          ids.begin() + static_cast<std::ptrdiff_t>(prompt.size() + count)};
}

/// Checks that any draft tokens, right and wrong ones, leave the answer's tokens unchanged.
void check_any_drafts(const DecoderModel& model, const Sampling& sampling) {
  constexpr size_t kTokens = 16;
  Checked with(model, 64, sampling.penalty_window);
  const uint32_t vocabulary = model.network().vocabulary;
  Ids prompt = prompt_of(11, 5);
  for (uint32_t& id : prompt) id %= vocabulary;
  const Ids expected = continued(with, prompt, kTokens, sampling, [](const Ids&) { return Ids(); });
  for (const size_t wrong_every : {0, 3}) {
    INFO("every " << wrong_every << "th draft token is wrong");
    const Ids found = continued(with, prompt, kTokens, sampling, [&](const Ids& ids) {
      Ids drafted;
      for (size_t at = ids.size() - prompt.size(); at < kTokens && drafted.size() < 7; ++at) {
        const bool wrong = wrong_every > 0 && at % wrong_every == 0;
        drafted.push_back(wrong ? (expected[at] + 1) % vocabulary : expected[at]);
      }
      return drafted;
    });
    CHECK(found == expected);
  }
}

}  // namespace

TEST_CASE("What was said before is looked up") {
  const Ids ids = {5, 6, 7, 8, 9, 1, 6, 7};
  CHECK(prompt_lookup(ids, 3, 3) == Ids{8, 9, 1});
  CHECK(prompt_lookup(ids, 2, 1) == Ids{8});
  CHECK(prompt_lookup(ids, 2, 7) == Ids{8, 9, 1, 6, 7, 8, 9});  // the repetition may continue
  CHECK(prompt_lookup(Ids{5, 6, 7, 8, 9, 7}, 3, 3).empty());    // one token is too short a match
  CHECK(prompt_lookup(Ids{5, 6, 7, 8, 9, 7}, 1, 2) == Ids{8, 9});
  CHECK(prompt_lookup(Ids{1, 2, 3, 1, 2, 4, 1, 2}, 2, 1) == Ids{4});        // the latest counts
  CHECK(prompt_lookup(Ids{1, 2, 3, 4, 2, 3, 1, 2, 3}, 3, 2) == Ids{4, 2});  // the longest counts
  CHECK(prompt_lookup(Ids{3, 3, 3}, 4, 2) == Ids{3, 3});
  CHECK(prompt_lookup(Ids{3}, 4, 2).empty());
  CHECK(prompt_lookup({}, 4, 2).empty());
}

TEST_CASE("What is drafted changes no token") {
  const auto model = open_decoder(small_decoder());
  SECTION("the likeliest") { check_any_drafts(*model, {}); }
  SECTION("with penalties") {
    check_any_drafts(*model, {.repetition_penalty = 1.3f, .presence_penalty = 0.2f});
  }
  SECTION("drawn") {
    check_any_drafts(*model, {.temperature = 1.2f, .top_k = 40, .top_p = 0.95f, .seed = 7});
  }
}

TEST_CASE("What is drafted changes no token of a reference model") {
  if (fixtures_dir().empty()) MULCIBER_SKIP("the reference models are not here");
  const std::string path = GENERATE("models/gpt2", "models/llama_realistic", "models2/phi3",
                                    "models2/gemma2", "models2/qwen3_moe", "gguf/tiny-Q4_K_M.gguf");
  INFO(path);
  check_any_drafts(*open_decoder(fixtures_dir() / path),
                   GENERATE(Sampling{}, Sampling{.temperature = 1, .seed = 3}));
}

TEST_CASE("At the end of the context tokens are checked again, and chosen alike") {
  const auto model = open_decoder(small_decoder());
  Checked with(*model, 24), wide(*model, 96);
  const Ids prompt = prompt_of(9, 3);
  const auto nothing = [](const Ids&) { return Ids(); };
  const Ids expected = continued(wide, prompt, 16, {}, nothing);
  CHECK(continued(with, prompt, 16, {}, nothing) == expected);
  CHECK(continued(with, prompt, 16, {}, [&](const Ids& ids) {
          const size_t done = ids.size() - prompt.size();
          const size_t count = std::min<size_t>({7, expected.size() - done, 24 - ids.size()});
          return Ids(expected.begin() + done, expected.begin() + done + count);
        }) == expected);
}

TEST_CASE("Tokens are drawn with the model's probabilities, whatever is drafted") {
  const auto model = open_decoder(small_decoder());
  const Ids prompt = prompt_of(8, 9);
  constexpr uint32_t kKinds = 5;
  constexpr int kDraws = 800;
  const float temperature = 2;
  TokenScorer scorer(shared_device(), model->network(), 16);
  // The probabilities of the most probable ids after a text, relative to each other.
  const auto probabilities = [&](Ids text) {
    text.push_back(0);
    const auto scores =
        scorer.score(text, static_cast<uint32_t>(text.size()) - 1, {.likeliest = kKinds});
    std::map<uint32_t, double> shares;
    double sum = 0;
    for (const TokenProbability& one : scores.back().likeliest)
      sum += shares[one.id] = std::exp(one.log_probability / temperature);
    for (auto& [id, share] : shares) share /= sum;
    return shares;
  };
  const std::map<uint32_t, double> first = probabilities(prompt);
  const auto likely =
      std::ranges::max_element(first, {}, [](const auto& entry) { return entry.second; });
  Ids longer = prompt;
  longer.push_back(likely->first);
  const std::map<uint32_t, double> second = probabilities(longer);

  Checked with(*model, 32);
  with.take_in(prompt);
  std::map<uint32_t, int> drawn_first, drawn_second;
  int accepted = 0;
  for (int draw = 0; draw < kDraws; ++draw) {
    const Ids chosen = with.check.run(
        {.ids = prompt,
         .drafted = Ids{likely->first, 9, 9},
         .sampling = {.temperature = temperature, .top_k = kKinds, .seed = uint64_t(draw) + 1}});
    ++drawn_first[chosen[0]];
    if (chosen.size() < 2) continue;
    ++accepted;
    ++drawn_second[chosen[1]];
  }
  const auto chi_square = [](const std::map<uint32_t, double>& shares,
                             const std::map<uint32_t, int>& drawn, int draws) {
    double sum = 0;
    int all = 0;
    for (const auto& [id, share] : shares) {
      const auto found = drawn.find(id);
      const int count = found == drawn.end() ? 0 : found->second;
      all += count;
      sum += (count - share * draws) * (count - share * draws) / (share * draws);
    }
    CHECK(all == draws);  // no other id was drawn
    return sum;
  };
  INFO(accepted << " of " << kDraws << " draft tokens were accepted");
  CHECK(accepted > kDraws / 10);
  // With 4 degrees of freedom, chi-square exceeds 18.5 with a probability of 0.001.
  CHECK(chi_square(first, drawn_first, kDraws) < 18.5);
  CHECK(chi_square(second, drawn_second, accepted) < 18.5);
}

TEST_CASE("A generator with draft tokens says what it says without") {
  const std::shared_ptr<Device> device = shared_handle();
  const std::string path = small_decoder().string();
  TextGenerator plain(device, path, {.context = 96}), model(device, path, {.context = 96});
  TextGenerator draft(device, path, {.context = 96, .masked_heads = {{0, 1}, {1, 0}}});
  const std::string prompt = "the red hammer and the blue nails and the red hammer and the";
  const auto compare = [&](GenerateOptions options) {
    const Generation expected = plain.generate(prompt, options);
    options.prompt_lookup = 3;
    Generation found = model.generate(prompt, options);
    CHECK(found.ids == expected.ids);
    CHECK(found.text == expected.text);
    CHECK(found.end == expected.end);
    CHECK(found.left_out == expected.left_out);
    CHECK(model.statistics().draft_tokens > 0);
    options.prompt_lookup = 0;
    options.draft = &draft;
    std::string pieces;
    options.on_text = [&](std::string_view piece) { pieces += piece; };
    found = model.generate(prompt, options);
    CHECK(found.ids == expected.ids);
    CHECK(found.end == expected.end);
    CHECK(pieces == expected.text);
    const GenerateStatistics& statistics = model.statistics();
    CHECK(statistics.draft_tokens > 0);
    CHECK(statistics.accepted_tokens <= statistics.draft_tokens);
    CHECK(statistics.new_tokens == found.ids.size());
    return expected;
  };
  const Generation greedy = compare({.max_new_tokens = 20, .ignore_end = true});
  compare({.max_new_tokens = 5, .ignore_end = true});
  compare({.max_new_tokens = 20});
  compare({.ignore_end = true});  // to the end of the context
  compare({.max_new_tokens = 90, .ignore_end = true, .shift = true});
  compare({.sampling = Sampling{.repetition_penalty = 1.2f, .frequency_penalty = 0.1f},
           .max_new_tokens = 20,
           .ignore_end = true});
  compare({.sampling = Sampling{.temperature = 1.0f, .top_p = 0.9f, .seed = 5},
           .max_new_tokens = 20,
           .ignore_end = true});
  REQUIRE(greedy.text.size() > 8);
  compare({.max_new_tokens = 20, .stop = {greedy.text.substr(5, 3)}, .ignore_end = true});
  // A conversation continues, and a cancelled answer has no text.
  const Generation next = plain.generate(prompt + greedy.text + " the", {.max_new_tokens = 8});
  CHECK(model.generate(prompt + greedy.text + " the", {.max_new_tokens = 8, .prompt_lookup = 2})
            .ids == next.ids);
  const std::atomic<bool> cancel{true};
  CHECK(model.generate(prompt, {.prompt_lookup = 2, .cancel = &cancel}).end ==
        GenerateEnd::kCancelled);
}

TEST_CASE("A draft that is the model itself is always right") {
  TextGenerator model(shared_handle(), small_decoder().string(), {.context = 64});
  TextGenerator draft = model.conversation();
  for (const float temperature : {0.0f, 0.8f}) {
    const Generation found =
        model.generate("the red hammer and the", {.sampling = Sampling{.temperature = temperature},
                                                  .max_new_tokens = 24,
                                                  .ignore_end = true,
                                                  .draft = &draft});
    CHECK(found.ids.size() == 24);
    const GenerateStatistics& statistics = model.statistics();
    CHECK(statistics.accepted_tokens == statistics.draft_tokens);
    // 4, 6 and 7 draft tokens with one more token each, and then the rest.
    CHECK(statistics.decode_steps == 4);
  }
}

TEST_CASE("What cannot be drafted is refused") {
  const std::shared_ptr<Device> device = shared_handle();
  TextGenerator model(device, small_decoder().string(), {.context = 64});
  const auto refused = [&](const GenerateOptions& options) {
    try {
      model.generate("the red", options);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK_THAT(refused({.draft = &model}), ContainsSubstring("draft model: is the model itself"));
  TextGenerator other(device, (data_dir() / "gguf_families/gpt2.gguf").string(), {.context = 32});
  CHECK_THAT(refused({.draft = &other}),
             ContainsSubstring("take a smaller model of the same family"));
  CHECK_THAT(refused({.prompt_lookup = 2, .draft_tokens = 8}),
             ContainsSubstring("ask for at most 7"));
  CHECK_THAT(refused({.attention = true, .prompt_lookup = 2}),
             ContainsSubstring("together with attention"));
  CHECK_THAT(refused({.grammar = Grammar::regex("a*"), .prompt_lookup = 2}),
             ContainsSubstring("together with a grammar"));
  TextGenerator narrow(device, small_decoder().string(), {.context = 6});
  try {
    narrow.generate("the", {.prompt_lookup = 2});
    CHECK(false);
  } catch (const SettingError& error) {
    CHECK_THAT(error.what(), ContainsSubstring("in passes of 8"));
  }
}
