// Sequences that share pages of keys and values: more of them than whole contexts would fit,
// preemption, shared beginnings, and answers that come back as history.
#include <algorithm>
#include <cmath>

#include "models/generation/sequence_slots.h"
#include "models/generation/traced_pass.h"
#include "mulciber/error.h"
#include "tests/batch_requests.h"
#include "tests/model_error.h"
#include "tests/small_decoder.h"
#include "tests/support.h"

using namespace mulciber;
using namespace mulciber::tests;
using Catch::Matchers::ContainsSubstring;

namespace {

BatchGenerator paged_batch(uint32_t sequences, uint32_t context, uint64_t tokens,
                           uint32_t chunk = 8, KeyValueStorage storage = KeyValueStorage::kF16) {
  BatchGeneratorOptions options;
  options.generator.context = context;
  options.generator.sequences = sequences;
  options.generator.key_values = storage;
  options.prompt_tokens = chunk;
  options.cache_tokens = tokens;
  return {shared_handle(), small_model(), options};
}

/// Runs requests that come one by one. Returns the most that ran together.
size_t run(BatchGenerator& batch, const std::vector<BatchRequest>& requests,
           std::vector<Told>& told, std::mt19937& random) {
  size_t most = 0;
  told.resize(requests.size());
  for (size_t next = 0; next < told.size() || batch.running() + batch.waiting() > 0;) {
    while (next < told.size() && random() % 3 != 0) {
      submit(batch, requests[next], told[next]);
      ++next;
    }
    batch.step();
    most = std::max(most, batch.running());
  }
  return most;
}

void check_same(const Told& told, const Told& alone) {
  REQUIRE(told.end);
  CHECK(told.ids == alone.ids);
  CHECK(told.bits == alone.bits);
  CHECK(told.text == alone.text);
  CHECK(told.end->end == alone.end->end);
  CHECK(std::ranges::is_sorted(told.prompt));
}

}  // namespace

TEST_CASE("A context that its pages pass takes the angles of short texts") {
  if (fixtures_dir().empty()) MULCIBER_SKIP("the reference models are not here");
  // LongRoPE: up to 28 tokens. Pages of 16 have room for 32.
  constexpr uint32_t kOriginal = 28, kChunk = 16;
  const auto model = open_decoder(fixtures_dir() / "models2/phi3");
  std::vector<uint32_t> prompt = prompt_of(kChunk, 5);
  for (uint32_t& id : prompt) id %= model->network().vocabulary;
  // Each token by a pass over the whole text, in a contiguous cache.
  const auto in_context = [&](uint32_t context) {
    std::vector<uint32_t> ids = prompt;
    while (ids.size() < kOriginal) {
      TracedPass pass(shared_device(), model->network(), 1, static_cast<uint32_t>(ids.size()),
                      {.logits = true}, context);
      pass.run(ids);
      const std::vector<float> all = pass.read("output.logits");
      const auto last = all.end() - static_cast<std::ptrdiff_t>(model->network().vocabulary);
      ids.push_back(static_cast<uint32_t>(std::max_element(last, all.end()) - last));
    }
    return std::vector<uint32_t>(ids.begin() + kChunk, ids.end());
  };
  const std::vector<uint32_t> expected = in_context(kOriginal);
  REQUIRE(expected != in_context(kOriginal + 1));
  SequenceSlots slots(shared_device(), model->network(),
                      {.slots = 2, .context = kOriginal, .chunk = kChunk});
  slots.begin(1, {.prompt = prompt});
  std::vector<uint32_t> ids = {slots.feed(1, kChunk, true).value()};
  const uint32_t decoding[] = {1};
  while (ids.size() < expected.size()) ids.push_back(slots.step(decoding).front().value());
  CHECK(ids == expected);
}

TEST_CASE("In the memory of three contexts twelve texts run, and answers stay as they are") {
  for (const KeyValueStorage storage : share_of({KeyValueStorage::kF16, KeyValueStorage::kF32})) {
    BatchGenerator batch = paged_batch(12, 96, 3 * 96, 8, storage);
    CHECK(batch.statistics().pages == 36);
    CHECK(batch.statistics().page_tokens == 8);
    std::mt19937 random(4);
    std::vector<BatchRequest> requests;
    for (int i = 0; i < 24; ++i) requests.push_back(some_request(random));
    std::vector<Told> told;
    CHECK(run(batch, requests, told, random) > 3);
    CHECK(batch.statistics().pages_used == 0);
    BatchGenerator single = paged_batch(12, 96, 0, 8, storage);
    for (size_t i = 0; i < requests.size(); ++i) {
      INFO("request " << i);
      Told alone;
      submit(single, requests[i], alone);
      while (single.step()) {
      }
      check_same(told[i], alone);
    }
    CHECK(batch.statistics().reused_tokens > 0);
  }
}

TEST_CASE(
    "Texts for whose answers pages run out are preempted, and give the answers that they would "
    "have given") {
  std::mt19937 random(9);
  std::vector<BatchRequest> requests;
  for (int i = 0; i < 5; ++i) {
    BatchRequest request;
    request.prompt = std::string(1, static_cast<char>('A' + i)) + words(random, 4);
    request.max_new_tokens = 88 + static_cast<uint32_t>(i);
    request.ignore_end = true;
    request.sampling = Sampling{.temperature = 1.1f, .repetition_penalty = 1.1f, .seed = 3};
    request.log_probabilities = 0;
    requests.push_back(request);
  }
  BatchGenerator batch = paged_batch(4, 128, 200);
  std::vector<Told> told;
  CHECK(run(batch, requests, told, random) > 1);
  CHECK(batch.statistics().preemptions > 0);
  CHECK(batch.statistics().pages_used == 0);
  uint64_t tokens = 0, prompts = 0;
  for (size_t i = 0; i < requests.size(); ++i) {
    INFO("request " << i);
    BatchGenerator single = paged_batch(4, 128, 0);
    Told alone;
    submit(single, requests[i], alone);
    while (single.step()) {
    }
    check_same(told[i], alone);
    tokens += alone.ids.size();
    prompts += alone.end->prompt_ids.size();
  }
  // No token is counted twice.
  CHECK(batch.statistics().new_tokens == tokens);
  CHECK(batch.statistics().prompt_tokens == prompts);
  CHECK(batch.statistics().reused_tokens <= prompts);
}

TEST_CASE("What texts begin with takes its pages once, and they run where none could alone") {
  const std::string system =
      "The old house and the red box and the nails in it, the blue hammer and the old red nails and"
      " the house: the red box and the blue hammer in the old house and the nails ";
  BatchGenerator batch = paged_batch(10, 128, 480);
  const size_t shared = batch.tokens(system).size() / 8 * 8;
  REQUIRE(shared > 64);
  BatchRequest request;
  request.max_new_tokens = 8;
  request.ignore_end = true;
  request.log_probabilities = 0;
  request.prompt = system;
  Told first;
  submit(batch, request, first);
  while (batch.step()) {
  }
  std::vector<Told> told(10);
  for (size_t i = 0; i < told.size(); ++i) {
    request.prompt = system + kWords[i % 8] + (i < 8 ? "" : " and");
    submit(batch, request, told[i]);
  }
  REQUIRE(batch.step());
  // There are 60 pages; 12 or more for each of ten texts would make 120.
  CHECK(batch.running() == 10);
  while (batch.step()) {
  }
  CHECK(batch.statistics().reused_tokens >= 10 * (shared - 8));
  for (size_t i = 0; i < told.size(); ++i) {
    INFO("request " << i);
    BatchGenerator single = paged_batch(10, 128, 0);
    request.prompt = system + kWords[i % 8] + (i < 8 ? "" : " and");
    Told alone;
    submit(single, request, alone);
    while (single.step()) {
    }
    check_same(told[i], alone);
  }
}

TEST_CASE("An answer that comes back as history is taken as it is only where that is asked for") {
  BatchRequest request;
  request.prompt = "The old house and the red box";
  request.max_new_tokens = 40;
  request.ignore_end = true;
  request.log_probabilities = 0;
  BatchGenerator batch = paged_batch(2, 128, 0);
  // The answer has words that are cut into the same tokens when they come back as text.
  request.logit_bias = {{batch.tokens(" red", false).at(0), 100.f}};
  Told turn;
  submit(batch, request, turn);
  while (batch.step()) {
  }
  std::vector<uint32_t> history = turn.end->prompt_ids;
  history.insert(history.end(), turn.ids.begin(), turn.ids.end());
  // A server gets the history as text. The tokenizer may cut it differently from the chosen tokens,
  // most likely at its end.
  request.prompt += turn.text + " and the";
  const std::vector<uint32_t> again = batch.tokens(request.prompt);
  const size_t same =
      static_cast<size_t>(std::ranges::mismatch(history, again).in1 - history.begin());
  REQUIRE(same > turn.end->prompt_ids.size() + 16);
  const uint64_t before = batch.statistics().reused_tokens;
  request.max_new_tokens = 8;
  Told exact, alone, quick;
  submit(batch, request, exact);
  while (batch.step()) {
  }
  CHECK(batch.statistics().reused_tokens - before <= turn.end->prompt_ids.size());
  {
    BatchGenerator single = paged_batch(2, 128, 0);
    submit(single, request, alone);
    while (single.step()) {
    }
  }
  check_same(exact, alone);
  // Now this generator has the prompt in its cache as a prompt; another generator does not.
  BatchGenerator other = paged_batch(2, 128, 0);
  BatchRequest first = request;
  first.prompt = "The old house and the red box";
  first.max_new_tokens = 40;
  Told same_turn;
  submit(other, first, same_turn);
  while (other.step()) {
  }
  REQUIRE(same_turn.ids == turn.ids);
  request.reuse_completions = true;
  submit(other, request, quick);
  while (other.step()) {
  }
  CHECK(other.statistics().reused_tokens >= std::min(same, history.size() - 1));
  REQUIRE(quick.end);
  CHECK(quick.bits.size() == exact.bits.size());
  // The result is rounded differently, but it is not another computation.
  CHECK(std::fabs(std::bit_cast<float>(quick.bits[0]) - std::bit_cast<float>(exact.bits[0])) <
        1e-3);
  // The exact answer stays exact even where rounded pages of the same tokens are cached.
  request.reuse_completions = false;
  Told later;
  submit(other, request, later);
  while (other.step()) {
  }
  check_same(later, alone);
}

TEST_CASE("Memory for keys and values has room for a context, and is what is asked for") {
  BatchGeneratorOptions options;
  options.generator.context = 96;
  options.generator.sequences = 4;
  options.cache_tokens = 95;
  try {
    BatchGenerator batch(shared_handle(), small_model(), options);
    FAIL("no error");
  } catch (const SettingError& error) {
    CHECK_THAT(error.what(), ContainsSubstring("cache_tokens"));
    CHECK_THAT(error.what(), ContainsSubstring("is 95, and a sequence may have 96"));
  }
  const std::shared_ptr<Device> device = shared_handle();
  const uint64_t before = device->memory().used();
  uint64_t contexts = 0;
  {
    BatchGenerator batch = paged_batch(16, 96, 0);
    contexts = device->memory().used() - before;
  }
  BatchGenerator batch = paged_batch(16, 96, 96);
  CHECK(device->memory().used() - before < contexts);
  // One text may still fill its context.
  BatchRequest request;
  request.prompt = "The red hammer";
  request.ignore_end = true;
  Told told[2];
  for (Told& one : told) submit(batch, request, one);
  while (batch.step()) {
  }
  for (const Told& one : told) {
    REQUIRE(one.end);
    CHECK(one.end->end == GenerateEnd::kContextFull);
    CHECK(one.end->prompt_ids.size() + one.ids.size() == 97);
  }
  CHECK(told[0].ids == told[1].ids);
}

TEST_CASE("A pool of pages is no larger than what a device binds at once") {
  const auto model = open_decoder(small_decoder());
  const DecoderNetwork& network = model->network();
  Capabilities device = shared_device().capabilities();
  const SlotShape wanted = {.slots = 8, .context = 128, .chunk = 32};
  CHECK(SequenceSlots::bindable(device, network, wanted).tokens == 0);
  uint64_t token_bytes = 0;
  for (const CausalLayer& layer : network.decoder.layers)
    token_bytes = std::max(token_bytes, row_bytes(network.cache, layer.attention.cache_columns()));
  device.max_storage_range = 300 * token_bytes;
  const SlotShape fits = SequenceSlots::bindable(device, network, wanted);
  CHECK(fits.tokens == 256);  // nine pages, one of which is reserved
  device.max_storage_range = 128 * token_bytes;
  CHECK_THAT(model_error([&] { SequenceSlots::bindable(device, network, wanted); }).value_or(""),
             ContainsSubstring("ask for a smaller context"));
}
