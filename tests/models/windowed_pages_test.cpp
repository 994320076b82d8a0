// Models whose layers all have windows: sequences release the pages before the window, so more of
// them fit, and answers keep every bit.
#include <algorithm>
#include <bit>
#include <random>

#include "models/core/token_probabilities.h"
#include "mulciber/embedding.h"
#include "runtime/device.h"
#include "tests/application_destination.h"
#include "tests/batch_requests.h"

using namespace mulciber;
using namespace mulciber::tests;

namespace {

constexpr uint32_t kWindowContext = 128, kPage = 8;

BatchGenerator windowed(uint32_t sequences, uint64_t cache_tokens = 0) {
  BatchGeneratorOptions options;
  options.generator.context = kWindowContext;
  options.generator.sequences = sequences;
  options.prompt_tokens = kPage;
  options.cache_tokens = cache_tokens;
  return {shared_handle(), windowed_model(), options};
}

BatchRequest to_the_end(const std::string& prompt, uint64_t seed = 0) {
  BatchRequest request;
  request.prompt = prompt;
  request.ignore_end = true;
  request.sampling = Sampling{.temperature = seed > 0 ? 1.1f : 0.f, .seed = seed};
  request.log_probabilities = 0;
  return request;
}

Told told_alone(BatchGenerator& batch, const BatchRequest& request) {
  Told told;
  submit(batch, request, told);
  while (batch.step()) {
  }
  return told;
}

}  // namespace

TEST_CASE("An answer over pages that are left is that over a cache which keeps everything") {
  BatchGenerator batch = windowed(1);
  for (const uint64_t seed : {0u, 7u}) {
    TextGenerator generator(shared_handle(), windowed_model(), {.context = kWindowContext});
    BatchRequest request = to_the_end("The red", seed);
    // The prompt is one pass in both.
    REQUIRE(batch.tokens(request.prompt).size() <= kPage);
    const Told told = told_alone(batch, request);
    const uint32_t vocabulary = generator.vocabulary();
    const Destination logits(*generator.device(), uint64_t{kWindowContext} * vocabulary);
    GenerationTask task(generator, request.prompt,
                        {.sampling = request.sampling, .ignore_end = true},
                        {.logits = logits.buffer});
    finish(task);
    const Generation whole = task.result();
    CHECK(whole.ids.size() > 100);
    CHECK(told.ids == whole.ids);
    std::vector<uint32_t> bits;
    for (size_t i = 0; i < whole.ids.size(); ++i)
      bits.push_back(std::bit_cast<uint32_t>(
          token_probabilities({logits.floats() + i * vocabulary, vocabulary}, whole.ids[i], 0)
              .chosen));
    CHECK(told.bits == bits);
  }
}

TEST_CASE("Six texts fill their contexts in the memory of less than two") {
  // A text reads 19 positions before a token, and a pass has 8: six pages at most, of the 16 of a
  // context.
  constexpr uint32_t kTexts = 6, kMostPages = 6;
  BatchGenerator batch = windowed(kTexts, kTexts * kMostPages * kPage);
  REQUIRE(batch.statistics().pages == kTexts * kMostPages);
  std::mt19937 random(3);
  std::vector<BatchRequest> requests;
  std::vector<Told> told(kTexts);
  for (uint32_t i = 0; i < kTexts; ++i) {
    requests.push_back(to_the_end(words(random, 2 + 10 * static_cast<int>(i % 3)), i));
    submit(batch, requests[i], told[i]);
  }
  batch.step();
  CHECK(batch.running() == kTexts);
  while (batch.step()) CHECK(batch.statistics().pages_used <= kTexts * kMostPages);
  CHECK(batch.statistics().preemptions == 0);
  CHECK(batch.statistics().pages_used == 0);
  BatchGenerator single = windowed(kTexts);
  for (uint32_t i = 0; i < kTexts; ++i) {
    INFO("text " << i);
    const Told expected = told_alone(single, requests[i]);
    REQUIRE(told[i].end);
    CHECK(told[i].end->end == GenerateEnd::kContextFull);
    CHECK(told[i].ids == expected.ids);
    CHECK(told[i].bits == expected.bits);
  }
}

TEST_CASE("A beginning longer than the window is computed once, also where its pages are left") {
  std::mt19937 random(8);
  const std::string beginning = words(random, 24);
  BatchGenerator batch = windowed(3, 2 * kWindowContext), fresh = windowed(3);
  const size_t shared = batch.tokens(beginning).size();
  REQUIRE(shared > 50);
  uint64_t before = 0;
  for (int turn = 0; turn < 6; ++turn) {
    BatchRequest request = to_the_end(beginning + " " + words(random, 1));
    request.max_new_tokens = turn % 2 == 0 ? 30 : 4;
    const Told told = told_alone(batch, request);
    BatchGenerator other = windowed(3);
    const Told expected = told_alone(other, request);
    CHECK(told.ids == expected.ids);
    CHECK(told.bits == expected.bits);
    const uint64_t reused = batch.statistics().reused_tokens - before;
    CHECK(reused >= (turn == 0 ? 0 : shared - 2 * kPage));
    before += reused;
  }
  // The next turn of a conversation reuses the pages that decoding steps left.
  BatchRequest request = to_the_end(beginning);
  request.reuse_completions = true;
  request.logit_bias = {{batch.tokens(" red", false).at(0), 100.f}};
  request.max_new_tokens = 16;
  const Told first = told_alone(batch, request);
  before = batch.statistics().reused_tokens;
  request.prompt += first.text + " and the";
  const Told second = told_alone(batch, request);
  CHECK(second.ids.size() == 16);
  CHECK(batch.statistics().reused_tokens - before >= shared + 8);
}
