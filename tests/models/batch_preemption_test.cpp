// Sequences that are preempted and resumed: with grammars, stop texts, penalties, sampling, biases
// and log probabilities each gives the undisturbed answer, bit for bit, and nothing twice.
#include <algorithm>
#include <random>

#include "tests/batch_requests.h"
#include "tests/support.h"

using namespace mulciber;
using namespace mulciber::tests;

namespace {

constexpr uint32_t kPreemptionContext = 128;

/// cache_tokens: 0: a whole context for each sequence.
BatchGenerator preempting_generator(std::shared_ptr<const OpenModel> model, uint64_t cache_tokens,
                                    KeyValueStorage storage) {
  BatchGeneratorOptions options;
  options.generator.context = kPreemptionContext;
  options.generator.sequences = 6;
  options.generator.key_values = storage;
  options.prompt_tokens = 8;
  options.cache_tokens = cache_tokens;
  return {shared_handle(), std::move(model), options};
}

const std::vector<Grammar>& preemption_grammars() {
  static const std::vector<Grammar> all = {
      Grammar::json_schema(R"({"type": "object", "properties": {
          "words": {"type": "array", "items": {"type": "string", "maxLength": 6}, "minItems": 20},
          "size": {"type": "integer"}}, "required": ["words", "size"]})"),
      Grammar::regex("([a-z]{2,6}[ ,]){24,}\\."),
      Grammar::gbnf("root ::= \"[\" item (\",\" item){20,} \"]\"\nitem ::= [0-9]+ | root")};
  return all;
}

/// A request whose answer may be long.
BatchRequest long_request(std::mt19937& random) {
  BatchRequest request = some_request(random);
  request.prompt = words(random, 1 + static_cast<int>(random() % 5));
  // The limit is more than the length that is expected of an answer when a text gets a slot.
  request.max_new_tokens = random() % 3 == 0 ? 0 : 66 + static_cast<uint32_t>(random() % 40);
  if (random() % 2 == 0)
    request.grammar = preemption_grammars()[random() % preemption_grammars().size()];
  request.ignore_end = random() % 4 != 0;
  if (random() % 5 == 0) request.stop = {"ed ", "nai", std::string(1, 'a' + random() % 26) + "e"};
  if (random() % 2 == 0) {
    request.sampling = Sampling{.temperature = 1.1f,
                                .top_k = 60,
                                .repetition_penalty = 1.15f,
                                .presence_penalty = 0.2f,
                                .frequency_penalty = 0.1f,
                                .seed = random()};
  }
  return request;
}

}  // namespace

TEST_CASE(
    "Texts that are preempted again and again give the answers that they give undisturbed, bit for "
    "bit") {
  for (const uint32_t seed : share_of({1u, 2u, 3u})) {
    const KeyValueStorage storage = seed == 2 ? KeyValueStorage::kF32 : KeyValueStorage::kF16;
    // Where all layers have windows, sequences release the pages before them.
    const std::shared_ptr<const OpenModel> model = seed == 3 ? windowed_model() : small_model();
    std::mt19937 random(seed);
    std::vector<BatchRequest> requests;
    for (int i = 0; i < 24; ++i) requests.push_back(long_request(random));
    // The memory is too small for all texts that get a slot together to reach their ends.
    BatchGenerator batch = preempting_generator(model, kPreemptionContext + 48, storage);
    std::vector<Told> told(requests.size());
    std::vector<bool> cancels(requests.size());
    std::vector<uint64_t> numbers(requests.size());
    for (size_t next = 0; next < told.size() || batch.running() + batch.waiting() > 0;) {
      while (next < told.size() && random() % 3 != 0) {
        numbers[next] = submit(batch, requests[next], told[next]);
        ++next;
      }
      // Cancels a text that is running, or has just been preempted.
      if (next > 0 && random() % 60 == 0) {
        const size_t one = random() % next;
        cancels[one] = cancels[one] || !told[one].end;
        batch.cancel(numbers[one]);
      }
      batch.step();
    }
    const BatchGeneratorStatistics& statistics = batch.statistics();
    if (seed == 3)
      CHECK(statistics.preemptions == 0);
    else
      CHECK(statistics.preemptions > 5);
    CHECK(statistics.pages_used == 0);
    BatchGenerator single = preempting_generator(model, 0, storage);
    size_t tokens = 0, complete = 0;
    for (size_t i = 0; i < requests.size(); ++i) {
      INFO("seed " << seed << ", request " << i);
      Told alone;
      submit(single, requests[i], alone);
      while (single.step()) {
      }
      REQUIRE(told[i].end.has_value() == alone.end.has_value());
      CHECK(told[i].error == alone.error);
      if (!alone.end) {
        CHECK(told[i].ids == alone.ids);
        tokens += told[i].ids.size();
        continue;
      }
      tokens += told[i].ids.size();
      CHECK(told[i].end->ids == told[i].ids);
      CHECK(told[i].end->text == told[i].text);
      CHECK(std::ranges::is_sorted(told[i].prompt));
      if (cancels[i] && told[i].end->end == GenerateEnd::kCancelled) {
        // A cancelled answer is the beginning of the whole answer.
        REQUIRE(told[i].ids.size() <= alone.ids.size());
        alone.ids.resize(told[i].ids.size());
        alone.bits.resize(told[i].bits.size());
        CHECK(told[i].ids == alone.ids);
        CHECK(told[i].bits == alone.bits);
        continue;
      }
      ++complete;
      CHECK(told[i].ids == alone.ids);
      CHECK(told[i].bits == alone.bits);
      CHECK(told[i].bits.size() == (requests[i].log_probabilities ? told[i].ids.size() : 0));
      REQUIRE(told[i].likeliest.size() == alone.likeliest.size());
      for (size_t j = 0; j < alone.likeliest.size(); ++j)
        CHECK(told[i].likeliest[j].id == alone.likeliest[j].id);
      CHECK(told[i].text == alone.text);
      CHECK(told[i].end->end == alone.end->end);
    }
    CHECK(complete > 8);
    CHECK(statistics.new_tokens == tokens);
    CHECK(single.statistics().preemptions == 0);
  }
}
