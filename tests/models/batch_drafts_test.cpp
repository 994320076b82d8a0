// Speculative decoding in a batch: draft tokens change no bit of any answer, alone and beside
// others.
#include <algorithm>
#include <cstring>
#include <random>

#include "models/generation/sequence_slots.h"
#include "mulciber/error.h"
#include "tests/batch_requests.h"
#include "tests/support.h"

using namespace mulciber;
using namespace mulciber::tests;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr uint32_t kDraftsContext = 128;

const std::vector<Grammar>& draft_grammars() {
  static const std::vector<Grammar> all = {
      Grammar::json_schema(R"({"type": "array", "items": {"enum": ["red", "blue"]},
                               "minItems": 3, "maxItems": 9})"),
      Grammar::regex("([a-c]{2}[ ,]){4,20}\\.")};
  return all;
}

/// A request whose text repeats itself, so that prompt lookup finds many draft tokens, and some are
/// accepted.
BatchRequest repeating_request(std::mt19937& random) {
  BatchRequest request = some_request(random);
  if (request.prompt.size() > 60) request.prompt.erase(60);
  request.prompt += " the red hammer, the red hammer, the red";
  // Some answers need more tokens than are expected of an answer when it begins.
  request.max_new_tokens = random() % 3 == 0 ? 0 : 1 + static_cast<uint32_t>(random() % 70);
  // Penalties and sampling keep the small model from repeating itself: some requests go without.
  if (random() % 3 != 0) request.sampling.reset();
  if (random() % 5 == 0) request.sampling = Sampling{.temperature = 0.3f, .seed = random() % 9};
  if (random() % 3 == 0) request.grammar = draft_grammars()[random() % draft_grammars().size()];
  if (random() % 3 == 0) request.ignore_end = false;
  if (random() % 5 == 0) request.stop = {"ed ", std::string(1, 'a' + random() % 26)};
  return request;
}

void check_same_told(const Told& told, const Told& alone) {
  CHECK(told.error == alone.error);
  CHECK(told.ids == alone.ids);
  CHECK(told.bits == alone.bits);
  CHECK(std::ranges::equal(told.likeliest, alone.likeliest, [](const auto& a, const auto& b) {
    return a.id == b.id && a.log_probability == b.log_probability;
  }));
  CHECK(told.text == alone.text);
  REQUIRE(told.end.has_value() == alone.end.has_value());
  if (told.end) CHECK(told.end->end == alone.end->end);
}

BatchGenerator drafting_generator(const std::shared_ptr<const OpenModel>& model, uint32_t sequences,
                                  uint64_t cache_tokens = 0,
                                  std::shared_ptr<const OpenModel> draft = nullptr) {
  BatchGeneratorOptions options;
  options.generator.context = kDraftsContext;
  options.generator.sequences = sequences;
  options.prompt_tokens = 8;
  options.cache_tokens = cache_tokens;
  options.draft = std::move(draft);
  return {shared_handle(), model, options};
}

}  // namespace

TEST_CASE("What is drafted in a batch changes no bit of an answer, whoever is there") {
  struct Setting {
    uint32_t sequences;
    bool windows;
    uint64_t cache_tokens;
    bool draft;
  };
  const Setting settings[] = {
      {8, false, 0, false}, {12, true, 0, false}, {6, false, 208, false}, {7, false, 0, true}};
  for (const Setting& setting : share_of(settings)) {
    std::mt19937 random(setting.sequences);
    const auto model = setting.windows ? windowed_model() : small_model();
    BatchGenerator batch = drafting_generator(model, setting.sequences, setting.cache_tokens,
                                              setting.draft ? windowed_model() : nullptr);
    std::vector<BatchRequest> requests;
    std::vector<Told> told(30);
    for (size_t i = 0; i < told.size(); ++i) requests.push_back(repeating_request(random));
    for (size_t next = 0; next < told.size() || batch.running() + batch.waiting() > 0;) {
      while (next < told.size() && random() % (setting.cache_tokens > 0 ? 2
                                               : setting.draft          ? 9
                                                                        : 5) ==
                                       0) {
        BatchRequest request = requests[next];
        if (next % 4 != 3) request.prompt_lookup = setting.draft ? 0 : 1 + random() % 4;
        request.draft = next % 4 != 3;
        if (next % 4 == 1) request.draft_tokens = 1 + random() % kMostDraftTokens;
        submit(batch, request, told[next++]);
      }
      batch.step();
    }
    uint64_t tokens = 0, drafted = 0, accepted = 0;
    for (size_t i = 0; i < told.size(); ++i) {
      INFO(setting.sequences << " slots, request " << i);
      BatchGenerator other = drafting_generator(model, setting.sequences);
      Told alone;
      submit(other, requests[i], alone);
      while (other.step()) {
      }
      check_same_told(told[i], alone);
      if (!told[i].end) continue;
      tokens += told[i].ids.size();
      drafted += told[i].end->draft_tokens;
      accepted += told[i].end->accepted_tokens;
      CHECK(told[i].end->accepted_tokens <= told[i].end->draft_tokens);
      CHECK(other.statistics().draft_tokens == 0);
      if (i % 4 == 3) CHECK(told[i].end->draft_tokens == 0);
    }
    const BatchGeneratorStatistics& statistics = batch.statistics();
    CHECK(statistics.new_tokens >= tokens);
    CHECK(statistics.draft_tokens >= drafted);
    CHECK(accepted > 10);
    CHECK(accepted < drafted);
    if (setting.cache_tokens > 0) CHECK(statistics.preemptions > 0);
  }
}

TEST_CASE("A draft that is the model itself is always right, and spares steps") {
  for (const float temperature : {0.0f, 0.8f}) {
    BatchGenerator batch = drafting_generator(small_model(), 12, 0, small_model());
    Told told[2];
    BatchRequest request;
    request.max_new_tokens = 32;
    request.ignore_end = true;
    for (uint32_t i = 0; i < 2; ++i) {
      request.prompt = i == 0 ? "the red hammer and the" : "The old house";
      request.sampling = Sampling{.temperature = temperature, .seed = 5 + i};
      submit(batch, request, told[i]);
    }
    while (batch.step()) {
    }
    const BatchGeneratorStatistics& statistics = batch.statistics();
    CHECK(statistics.new_tokens == 64);
    CHECK(statistics.draft_tokens > 40);
    CHECK(statistics.accepted_tokens == statistics.draft_tokens);
    CHECK(statistics.steps < 16);
  }
}

TEST_CASE("Draft tokens take free slots alone, and no more than was said") {
  BatchRequest request;
  request.prompt = "the red hammer, the red hammer, the red";
  request.max_new_tokens = 40;
  request.ignore_end = true;
  request.prompt_lookup = 2;
  const auto statistics_of = [&](uint32_t sequences, uint32_t rows, uint32_t texts) {
    BatchGeneratorOptions options;
    options.generator.context = kDraftsContext;
    options.generator.sequences = sequences;
    options.draft_rows = rows;
    BatchGenerator batch(shared_handle(), small_model(), options);
    std::vector<Told> told(texts);
    for (Told& one : told) submit(batch, request, one);
    while (batch.step()) {
    }
    return batch.statistics();
  };
  CHECK(statistics_of(1, 0, 1).draft_tokens == 0);
  CHECK(statistics_of(3, 0, 3).draft_tokens == 0);
  const BatchGeneratorStatistics bounded = statistics_of(8, 2, 1), free = statistics_of(8, 0, 1);
  CHECK(bounded.draft_tokens > 0);
  CHECK(bounded.draft_tokens <= 2 * bounded.steps);
  CHECK(free.draft_tokens > bounded.draft_tokens);
  CHECK(free.steps <= bounded.steps);
  CHECK(bounded.steps < 39);
}

TEST_CASE("What cannot be drafted in a batch is refused, or not drafted") {
  const auto refused = [&](const std::shared_ptr<const OpenModel>& draft) {
    try {
      drafting_generator(small_model(), 4, 0, draft);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK_THAT(refused(open_model((data_dir() / "gguf_families/gpt2.gguf").string())),
             ContainsSubstring("take a smaller model of the same family"));
  BatchGenerator batch = drafting_generator(small_model(), 4);
  BatchRequest request;
  request.prompt = "the";
  request.draft_tokens = kMostDraftTokens + 1;
  try {
    batch.submit(request);
    CHECK(false);
  } catch (const SettingError& error) {
    CHECK_THAT(error.what(), ContainsSubstring("ask for at most 7"));
  }
  if (fixtures_dir().empty()) MULCIBER_SKIP("MULCIBER_FIXTURES is not set");
  const auto keeps_states = open_model((fixtures_dir() / "models2/mamba").string());
  try {
    drafting_generator(keeps_states, 4, 0, keeps_states);
    CHECK(false);
  } catch (const ModelError& error) {
    CHECK_THAT(error.what(), ContainsSubstring("keep a state"));
  }
  BatchGenerator states = drafting_generator(keeps_states, 4);
  request = {};
  request.prompt_ids = {1, 2, 3, 1, 2, 3, 1, 2, 3};
  request.max_new_tokens = 12;
  Told plain, told;
  submit(states, request, plain);
  request.prompt_lookup = 2;
  submit(states, request, told);
  while (states.step()) {
  }
  CHECK(told.ids == plain.ids);
  CHECK(states.statistics().draft_tokens == 0);
}

namespace {

constexpr uint32_t kTokens = 14, kOther = 5, kSlot = 6;

struct Said {
  std::vector<uint32_t> ids;
  std::vector<std::vector<float>> logits;
};

/// The answer of a sequence that runs beside another. `known`: draft tokens, every third of them
/// made wrong. The rows that check them come before the sequence's own row, the last draft token's
/// first: the order of rows may not matter.
Said said(const DecoderModel& model, std::span<const uint32_t> known) {
  SequenceSlots slots(shared_device(), model.network(), {.slots = 7, .context = 64, .chunk = 16});
  for (const uint32_t slot : {kOther, kSlot}) {
    std::vector<uint32_t> prompt = prompt_of(9 + slot, 3 + slot);
    for (uint32_t& id : prompt) id %= model.network().vocabulary;
    slots.begin(slot,
                {.prompt = prompt, .sampling = {.repetition_penalty = 1.1f}, .keeps_logits = true});
    slots.feed(slot, static_cast<uint32_t>(prompt.size()), true);
  }
  Said said;
  const auto take = [&](const SequenceSlots::Choice& choice) {
    REQUIRE(choice);
    said.ids.push_back(*choice);
    said.logits.push_back(slots.logits(kSlot));
  };
  while (said.ids.size() < kTokens) {
    SequenceSlots::Draft draft = {.slot = kSlot, .ids = {}, .rows = {}, .masks = {}};
    for (size_t at = said.ids.size(); at < known.size() && draft.ids.size() < 5; ++at) {
      draft.rows.push_back(4 - static_cast<uint32_t>(draft.ids.size()));
      draft.ids.push_back(at % 3 == 2 ? (known[at] + 1) % model.network().vocabulary : known[at]);
    }
    REQUIRE(slots.reserve(kSlot, 1 + static_cast<uint32_t>(draft.ids.size())));
    const std::vector<uint32_t> all = {kOther, kSlot};
    const size_t count = draft.ids.empty() ? 0 : 1;
    take(slots.step(all, std::span(&draft, count))[1]);
    while (const auto choice = slots.follow(kSlot)) take(*choice);
  }
  said.ids.resize(kTokens);
  said.logits.resize(kTokens);
  return said;
}

void check_any_model(const std::filesystem::path& path, const ModelOptions& options = {}) {
  INFO(path);
  const auto model = open_decoder(path, options);
  const Said plain = said(*model, {}), found = said(*model, plain.ids);
  CHECK(found.ids == plain.ids);
  for (uint32_t i = 0; i < kTokens; ++i) {
    INFO("token " << i);
    CHECK(std::memcmp(found.logits[i].data(), plain.logits[i].data(),
                      plain.logits[i].size() * sizeof(float)) == 0);
  }
}

}  // namespace

TEST_CASE("A draft token's row computes the bits of a step that feeds it") {
  check_any_model(small_decoder());
  check_any_model(small_decoder(), {.activations = DataType::kF16});
  // Steps without draft tokens append and attend in one dispatch.
  check_any_model(small_decoder(), {.folded_appends = true, .cache = DataType::kF16});
  for (const char* name : {"deepseek_v2", "gpt_oss", "qwen2_moe", "cohere2"})
    check_any_model(data_dir() / "gguf_decoders" / (std::string(name) + ".gguf"));
  if (fixtures_dir().empty()) MULCIBER_SKIP("MULCIBER_FIXTURES is not set");
  for (const char* name : {"models/gpt2", "models/llama_realistic", "models2/gemma2",
                           "models2/mixtral", "gguf/tiny-Q4_K_M.gguf"})
    check_any_model(fixtures_dir() / name);
  check_any_model(fixtures_dir() / "models/llama_realistic", {.cache = DataType::kQ8_0});
}
