// Speculative decoding of one sequence: draft tokens change no bit of what the model computes,
// and neither a completion nor its distribution.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>

#include "models/generation/prompt_lookup.h"
#include "models/generation/token_scorer.h"
#include "mulciber/error.h"
#include "mulciber/grammar.h"
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

struct ChosenIds {
  Ids ids;
  std::vector<std::vector<float>> logits;  // of each choice, where the sequence keeps them
  uint32_t steps = 0;
};

/// What a sequence chooses in the only slot, with draft tokens that `draft` makes from the choices
/// so far.
template <typename Drafter>
ChosenIds chosen_ids(SequenceSlots& slots, const SlotSequence& sequence, size_t count,
                     const Drafter& draft) {
  ChosenIds found;
  Ids text(sequence.prompt.begin(), sequence.prompt.end());
  const auto take = [&](const SequenceSlots::Choice& choice) {
    REQUIRE(choice);
    found.ids.push_back(*choice);
    text.push_back(*choice);
    if (sequence.keeps_logits) found.logits.push_back(slots.logits(0));
  };
  take(decode_sequence(slots, 0, sequence, {.max_new_tokens = 1}).ids.front());
  const uint32_t only[] = {0};
  while (found.ids.size() < count) {
    SequenceSlots::Draft drafted = {.slot = 0, .ids = draft(found.ids), .rows = {}, .masks = {}};
    const auto tokens = static_cast<uint32_t>(drafted.ids.size());
    for (uint32_t row = 1; row <= tokens; ++row) drafted.rows.push_back(row);
    REQUIRE(slots.reserve(0, 1 + tokens));
    ++found.steps;
    take(slots.step(only, std::span(&drafted, tokens > 0 ? 1 : 0)).front());
    size_t accepted = 0;
    while (const auto choice = slots.follow(0)) {
      REQUIRE(accepted < tokens);
      CHECK(drafted.ids[accepted] == found.ids.back());
      ++accepted;
      take(*choice);
    }
    if (accepted < tokens) CHECK(drafted.ids[accepted] != found.ids.back());
    CHECK(slots.length(0) == text.size() - 1);
    CHECK(std::ranges::equal(slots.tokens(0), std::span(text).first(text.size() - 1)));
  }
  slots.end(0, false);
  found.ids.resize(count);
  found.logits.resize(sequence.keeps_logits ? count : 0);
  return found;
}

Ids no_draft(const Ids&) { return {}; }

/// Checks that any draft tokens, right and wrong ones, change no bit of what the model computes.
void check_any_drafts(const DecoderModel& model, const Sampling& sampling) {
  constexpr size_t kChoices = 16;
  SequenceSlots slots = slots_of(model.network(), 1, 64);
  REQUIRE(slots.shape().draft_rows == kMostDraftTokens);
  const uint32_t vocabulary = model.network().vocabulary;
  Ids prompt = prompt_of(11, 5);
  for (uint32_t& id : prompt) id %= vocabulary;
  const SlotSequence sequence = {
      .prompt = prompt, .drafts = true, .sampling = sampling, .keeps_logits = true};
  const ChosenIds expected = chosen_ids(slots, sequence, kChoices, no_draft);
  CHECK(expected.steps == kChoices - 1);
  for (const size_t wrong_every : {0, 3}) {
    INFO("every " << wrong_every << "th draft token is wrong");
    const ChosenIds found = chosen_ids(slots, sequence, kChoices, [&](const Ids& ids) {
      Ids drafted;
      for (size_t at = ids.size(); at < kChoices && drafted.size() < kMostDraftTokens; ++at) {
        const bool wrong = wrong_every > 0 && at % wrong_every == 0;
        drafted.push_back(wrong ? (expected.ids[at] + 1) % vocabulary : expected.ids[at]);
      }
      return drafted;
    });
    CHECK(found.ids == expected.ids);
    // A step chooses eight tokens, or three: two draft tokens, and another id than the wrong one.
    CHECK(found.steps == (wrong_every == 0 ? 2 : 5));
    for (size_t i = 0; i < kChoices; ++i) {
      INFO("choice " << i);
      CHECK(std::memcmp(found.logits[i].data(), expected.logits[i].data(),
                        expected.logits[i].size() * sizeof(float)) == 0);
    }
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

TEST_CASE("What is drafted changes no bit of a completion") {
  const auto model = open_decoder(small_decoder());
  SECTION("the likeliest") { check_any_drafts(*model, {}); }
  SECTION("with penalties") {
    check_any_drafts(*model, {.repetition_penalty = 1.3f, .presence_penalty = 0.2f});
  }
  SECTION("drawn") {
    check_any_drafts(*model, {.temperature = 1.2f, .top_k = 40, .top_p = 0.95f, .seed = 7});
  }
}

TEST_CASE("What is drafted changes no bit of any network") {
  // Steps without draft tokens append and attend in one dispatch.
  check_any_drafts(
      *open_decoder(small_decoder(), {.folded_appends = true, .cache = DataType::kF16}), {});
  // Some of these have sliding windows.
  for (const char* name : {"cohere2", "deepseek_v2", "gpt_oss"}) {
    INFO(name);
    check_any_drafts(*open_decoder(data_dir() / "gguf_decoders" / (std::string(name) + ".gguf")),
                     {});
  }
}

TEST_CASE("What is drafted changes no bit of a reference model") {
  if (fixtures_dir().empty()) MULCIBER_SKIP("the reference models are not here");
  const std::string path = GENERATE("models/gpt2", "models/llama_realistic", "models2/phi3",
                                    "models2/gemma2", "models2/qwen3_moe", "gguf/tiny-Q4_K_M.gguf");
  INFO(path);
  check_any_drafts(*open_decoder(fixtures_dir() / path),
                   GENERATE(Sampling{}, Sampling{.temperature = 1, .seed = 3}));
}

TEST_CASE("Draft tokens are verified up to the end of the context") {
  const auto model = open_decoder(small_decoder());
  SequenceSlots narrow = slots_of(model->network(), 1, 24);
  SequenceSlots wide = slots_of(model->network(), 1, 96);
  const Ids prompt = prompt_of(9, 3);
  const SlotSequence sequence = {.prompt = prompt, .drafts = true};
  const Ids expected = chosen_ids(wide, sequence, 16, no_draft).ids;
  CHECK(chosen_ids(narrow, sequence, 16, no_draft).ids == expected);
  const ChosenIds found = chosen_ids(narrow, sequence, 16, [&](const Ids& ids) {
    // The last draft token takes the last position of the context.
    const size_t done = ids.size(), count = std::min<size_t>(kMostDraftTokens, 15 - done);
    return Ids(expected.begin() + static_cast<std::ptrdiff_t>(done),
               expected.begin() + static_cast<std::ptrdiff_t>(done + count));
  });
  CHECK(found.ids == expected);
  CHECK(found.steps == 2);
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

  SequenceSlots slots = slots_of(model->network(), 1, 32);
  const Ids begin(prompt.begin(), prompt.end() - 1);
  decode_sequence(slots, 0, {.prompt = begin}, {});
  slots.end(0, true);
  const SequenceSlots::Draft drafted = {
      .slot = 0, .ids = {likely->first, 9, 9}, .rows = {1, 2, 3}, .masks = {}};
  const uint32_t only[] = {0};
  std::map<uint32_t, int> drawn_first, drawn_second;
  int accepted = 0;
  for (int draw = 0; draw < kDraws; ++draw) {
    const Sampling sampling = {
        .temperature = temperature, .top_k = kKinds, .seed = uint64_t(draw) + 1};
    const uint32_t held =
        slots.begin(0, {.prompt = prompt, .exact = false, .drafts = true, .sampling = sampling});
    REQUIRE(held == begin.size());
    // A step feeds the last token of the prompt, and the draft tokens behind it.
    slots.rewrite(0, prompt);
    REQUIRE(slots.reserve(0, 4));
    const SequenceSlots::Choice chosen = slots.step(only, std::span(&drafted, 1)).front();
    REQUIRE(chosen);
    ++drawn_first[*chosen];
    if (const std::optional<SequenceSlots::Choice> second = slots.follow(0)) {
      REQUIRE(second->has_value());
      ++accepted;
      ++drawn_second[**second];
    }
    slots.end(0, true);
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

namespace {

const std::string kRepeatingPrompt = "the red hammer and the blue nails and the red hammer and the";

}  // namespace

TEST_CASE("A generator with draft tokens says what it says without") {
  const std::shared_ptr<Device> device = shared_handle();
  const std::string path = small_decoder().string();
  TextGenerator plain(device, path, {.context = 96}), model(device, path, {.context = 96});
  TextGenerator draft(device, path, {.context = 96, .masked_heads = {{0, 1}, {1, 0}}});
  const std::string& prompt = kRepeatingPrompt;
  uint64_t drafted = 0, accepted = 0;  // by prompt lookup
  const auto compare = [&](GenerateOptions options) {
    const Generation expected = plain.generate(prompt, options);
    options.prompt_lookup = 1;
    Generation found = model.generate(prompt, options);
    CHECK(found.ids == expected.ids);
    CHECK(found.text == expected.text);
    CHECK(found.end == expected.end);
    CHECK(found.left_out == expected.left_out);
    drafted += model.statistics().draft_tokens;
    accepted += model.statistics().accepted_tokens;
    CHECK(found.draft_tokens == model.statistics().draft_tokens);
    CHECK(found.accepted_tokens == model.statistics().accepted_tokens);
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
  // The model repeats a token now and then.
  CHECK(drafted > accepted);
  CHECK(accepted > 0);
  // A conversation continues, and a cancelled answer has no text.
  const Generation next = plain.generate(prompt + greedy.text + " the", {.max_new_tokens = 8});
  CHECK(model.generate(prompt + greedy.text + " the", {.max_new_tokens = 8, .prompt_lookup = 2})
            .ids == next.ids);
  const std::atomic<bool> cancel{true};
  CHECK(model.generate(prompt, {.prompt_lookup = 2, .cancel = &cancel}).end ==
        GenerateEnd::kCancelled);
}

TEST_CASE("Draft tokens follow a grammar, and change nothing of its completion") {
  const std::shared_ptr<Device> device = shared_handle();
  const std::string path = small_decoder().string();
  TextGenerator plain(device, path, {.context = 96}), model(device, path, {.context = 96});
  TextGenerator draft(device, path, {.context = 96, .masked_heads = {{0, 1}, {1, 0}}});
  const auto check_same = [](const Generation& found, const Generation& expected) {
    CHECK(found.ids == expected.ids);
    CHECK(found.text == expected.text);
    CHECK(found.end == expected.end);
    CHECK(expected.draft_tokens == 0);
  };
  // Returns the completion with prompt lookup.
  const auto compare = [&](GenerateOptions options, uint32_t longest) {
    const Generation expected = plain.generate(kRepeatingPrompt, options);
    options.draft = &draft;
    check_same(model.generate(kRepeatingPrompt, options), expected);
    options.draft = nullptr;
    options.prompt_lookup = longest;
    const Generation found = model.generate(kRepeatingPrompt, options);
    check_same(found, expected);
    return found;
  };
  // No token but these of two bytes spells the letter, so that every draft token is right.
  const Grammar letters = Grammar::regex("ñ{12}");
  const Generation forced = compare({.grammar = letters}, 2);
  CHECK(forced.ids.size() == 24);
  CHECK(forced.draft_tokens > 0);
  CHECK(forced.accepted_tokens == forced.draft_tokens);
  CHECK(model.statistics().accepted_tokens == forced.accepted_tokens);
  CHECK(model.statistics().decode_steps == 23 - forced.accepted_tokens);
  // Four tokens spell such texts, and one that was chosen before is looked up.
  const Grammar repeating = Grammar::regex("[ab]{30}");
  CHECK(compare({.grammar = repeating}, 1).accepted_tokens > 0);
  for (const uint64_t seed : {1, 2}) {
    const GenerateOptions options = {.sampling = Sampling{.temperature = 1.5f, .seed = seed},
                                     .grammar = repeating};
    CHECK(compare(options, 1).draft_tokens > 0);
  }
  const Grammar array = Grammar::json_schema(
      R"({"type": "array", "items": {"enum": ["red", "blue"]}, "minItems": 3, "maxItems": 9})");
  compare({.grammar = array}, 2);
  compare({.max_new_tokens = 20, .ignore_end = true, .grammar = array}, 1);

  // The last draft token takes the last position of the context.
  TextGenerator narrow(device, path, {.context = 6});
  const Generation full = narrow.generate("t", {.grammar = letters, .prompt_lookup = 1});
  CHECK(full.ids == Ids(forced.ids.begin(), forced.ids.begin() + 5));
  CHECK(full.end == GenerateEnd::kContextFull);
  CHECK(full.draft_tokens == 1);
  CHECK(full.accepted_tokens == 1);
}

TEST_CASE("Attention maps of a completion do not depend on draft tokens") {
  const std::shared_ptr<Device> device = shared_handle();
  const std::string path = small_decoder().string();
  TextGenerator plain(device, path, {.context = 96}), model(device, path, {.context = 96});
  GenerateOptions options = {.max_new_tokens = 20, .ignore_end = true, .attention = true};
  const Generation expected = plain.generate(kRepeatingPrompt, options);
  options.prompt_lookup = 1;
  const Generation found = model.generate(kRepeatingPrompt, options);
  CHECK(found.draft_tokens > 0);
  CHECK(found.ids == expected.ids);
  REQUIRE(expected.attention);
  REQUIRE(found.attention);
  CHECK(found.attention->length == found.prompt_ids.size() + 20);
  CHECK(found.attention->weights == expected.attention->weights);
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
    // Prefill chooses the first token. Then there are 4, 6 and 7 draft tokens with one more token
    // each, and then the rest.
    CHECK(statistics.decode_steps == 4);
  }
}

TEST_CASE("What cannot be drafted is refused") {
  const std::shared_ptr<Device> device = shared_handle();
  const std::string path = small_decoder().string();
  TextGenerator model(device, path, {.context = 64});
  const auto refused = [](TextGenerator& asked, const GenerateOptions& options) {
    try {
      asked.generate("the red", options);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK_THAT(refused(model, {.draft = &model}),
             ContainsSubstring("draft model: is the model itself"));
  TextGenerator other(device, (data_dir() / "gguf_families/gpt2.gguf").string(), {.context = 32});
  CHECK_THAT(refused(model, {.draft = &other}),
             ContainsSubstring("take a smaller model of the same family"));
  CHECK_THAT(refused(model, {.prompt_lookup = 2, .draft_tokens = 8}),
             ContainsSubstring("ask for at most 7"));
  TextGenerator several(device, path, {.context = 64, .sequences = 2});
  for (const GenerateOptions& options :
       {GenerateOptions{.prompt_lookup = 2}, GenerateOptions{.draft = &model}})
    CHECK_THAT(refused(several, options), ContainsSubstring("of a model loaded for several texts"));
  CHECK_THAT(refused(model, {.draft = &several}),
             ContainsSubstring("draft model: was loaded for several texts"));
  if (fixtures_dir().empty()) MULCIBER_SKIP("MULCIBER_FIXTURES is not set");
  TextGenerator states(device, (fixtures_dir() / "models2/mamba").string(), {.context = 64});
  CHECK_THAT(refused(states, {.prompt_lookup = 2}), ContainsSubstring("keep a state"));
  CHECK_THAT(refused(model, {.draft = &states}), ContainsSubstring("keep a state"));
}
