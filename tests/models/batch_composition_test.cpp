// Sequences that come and go between steps: each gets the answer that it gets alone, bit for bit.
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "models/generation/sequence_slots.h"
#include "tests/batch_requests.h"
#include "tests/conformance_rows.h"
#include "tests/support.h"

using namespace mulciber;
using namespace mulciber::tests;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("An answer does not depend on batch composition, slots and times of arrival") {
  std::mt19937 random(7);
  // A step of a batch of 16 slots may cover only 12 of them.
  for (const uint32_t sequences : share_of({3u, 8u, 16u})) {
    size_t most = 0;
    BatchGenerator batch = batch_of(sequences);
    std::vector<BatchRequest> requests;
    std::vector<Told> told(24);
    for (size_t i = 0; i < told.size(); ++i) requests.push_back(some_request(random));
    for (size_t next = 0; next < told.size() || batch.running() + batch.waiting() > 0;) {
      while (next < told.size() && random() % 3 < (sequences > 8 ? 2 : 1)) {
        submit(batch, requests[next], told[next]);
        ++next;
      }
      batch.step();
      CHECK(batch.running() <= sequences);
      most = std::max(most, batch.running());
    }
    CHECK_FALSE(batch.step());
    CHECK(most > sequences / 2);
    uint64_t tokens = 0;
    for (size_t i = 0; i < told.size(); ++i) {
      INFO(sequences << " slots, request " << i);
      const Told alone = answer_alone(requests[i], sequences);
      REQUIRE(told[i].end);
      CHECK(told[i].ids == alone.ids);
      CHECK(told[i].bits == alone.bits);
      CHECK(told[i].bits.size() == (requests[i].log_probabilities ? alone.ids.size() : 0));
      CHECK(told[i].text == alone.text);
      CHECK(told[i].end->end == alone.end->end);
      tokens += alone.ids.size();
    }
    const BatchGeneratorStatistics& statistics = batch.statistics();
    CHECK(statistics.requests == told.size());
    CHECK(statistics.ended == told.size());
    CHECK(statistics.new_tokens == tokens);
    CHECK(statistics.reused_tokens > 0);
    CHECK(statistics.row_steps > statistics.steps);
  }
}

namespace {

/// Logits of a few steps of one sequence among `count`: it is first, last or between others, whose
/// number changes from step to step.
std::vector<std::vector<float>> logits_beside_others(const DecoderModel& model, uint32_t count) {
  SequenceSlots slots(shared_device(), model.network(), {.slots = 12, .context = 64, .chunk = 16});
  const uint32_t looked_at = count / 2;
  std::vector<uint32_t> all;
  for (uint32_t slot = 0; slot < count; ++slot) {
    std::vector<uint32_t> prompt =
        slot == looked_at ? prompt_of(21, 3) : prompt_of(5 + 3 * slot, slot + count);
    for (uint32_t& id : prompt) id %= model.network().vocabulary;
    slots.begin(slot, {.prompt = prompt, .keeps_logits = true});
    for (uint32_t held = 0; held < prompt.size();) {
      const auto fed = std::min<uint32_t>(16, static_cast<uint32_t>(prompt.size()) - held);
      held += fed;
      slots.feed(slot, fed, held == prompt.size());
    }
    all.push_back(slot);
  }
  std::vector<std::vector<float>> logits;
  for (int step = 0; step < 4; ++step) {
    for (const SequenceSlots::Choice& choice : slots.step(all)) CHECK(choice);
    logits.push_back(slots.logits(looked_at));
  }
  return logits;
}

void check_composition(const std::filesystem::path& path, const ModelOptions& options = {}) {
  INFO(path);
  const auto model = open_decoder(path, options);
  const std::vector<std::vector<float>> alone = logits_beside_others(*model, 1);
  // Each number of sequences has a step program of its own to compile.
  for (const uint32_t count : share_of({2u, 3u, 5u, 8u, 9u, 12u})) {
    INFO(count << " sequences");
    const std::vector<std::vector<float>> together = logits_beside_others(*model, count);
    for (size_t step = 0; step < alone.size(); ++step) {
      INFO("step " << step);
      CHECK(std::memcmp(together[step].data(), alone[step].data(),
                        alone[step].size() * sizeof(float)) == 0);
    }
  }
}

}  // namespace

TEST_CASE("A step computes of a sequence the same bits, however many take part") {
  check_composition(small_decoder());
  check_composition(small_decoder(), {.activations = DataType::kF16});
  check_composition(small_decoder(), {.cache = DataType::kF16});
  for (const char* latent : {"deepseek_v2.gguf", "deepseek_v3.gguf"})
    check_composition(source_dir() / "tests/data/gguf_decoders" / latent,
                      {.cache = DataType::kF16});
  const std::filesystem::path fixtures = fixtures_dir();
  if (fixtures.empty()) MULCIBER_SKIP("MULCIBER_FIXTURES is not set");
  for (const char* name :
       {"models/gpt2", "models/llama_realistic", "models/qwen3", "models2/gpt_neox",
        "models2/mixtral", "models2/gemma2", "models2/mamba"})
    check_composition(fixtures / name);
  check_composition(fixtures / "gguf/tiny-Q4_K_M.gguf");
  check_composition(fixtures / "gguf/tiny-Q8_0.gguf", {.fast_activations = true});
}

TEST_CASE("Several steps in a submission change no completion") {
  std::mt19937 random(11);
  std::vector<BatchRequest> requests;
  for (int i = 0; i < 9; ++i) {
    requests.push_back(some_request(random));
    // Log probabilities are read after every step.
    requests.back().log_probabilities = std::nullopt;
    // One ends by a text, others where the context ends; a third of the limits is no multiple.
    if (i == 3) requests.back().stop = {" the"};
    if (i > 6) requests.back().max_new_tokens = 0;
  }
  std::vector<Told> alone;
  for (const BatchRequest& request : requests) alone.push_back(answer_alone(request, 4));
  for (const uint32_t steps : {3u, 32u}) {
    BatchGenerator batch = batch_of(4, 96, KeyValueStorage::kF16, steps);
    std::vector<Told> told(requests.size());
    for (size_t i = 0; i < told.size(); ++i) {
      submit(batch, requests[i], told[i]);
      if (i % 2 == 0) batch.step();
    }
    while (batch.step()) {
    }
    for (size_t i = 0; i < told.size(); ++i) {
      INFO(steps << " steps, request " << i);
      CHECK(told[i].ids == alone[i].ids);
      CHECK(told[i].text == alone[i].text);
      REQUIRE(told[i].end);
      CHECK(told[i].end->end == alone[i].end->end);
    }
  }

  // Of 40 tokens the prompt's pass chooses the first.
  BatchRequest request = {.prompt = "The red hammer", .max_new_tokens = 40, .ignore_end = true};
  BatchGenerator batch = batch_of(2, 96, KeyValueStorage::kF16, 13);
  Told told;
  submit(batch, request, told);
  REQUIRE(batch.step());
  const uint64_t waits = shared_device().counters().cpu_waits;
  while (batch.step()) {
  }
  CHECK(told.ids.size() == 40);
  CHECK(batch.statistics().steps == 39);
  CHECK(shared_device().counters().cpu_waits - waits < 13);
  BatchGeneratorOptions options;
  options.steps_per_submission = 33;
  CHECK_THROWS_AS(BatchGenerator(shared_handle(), small_model(), options), SettingError);
}

TEST_CASE("What prompts begin with is computed once, and answers stay as they were") {
  const std::string system = "The old house and the red box and the nails in it, the blue hammer: ";
  BatchRequest request;
  request.max_new_tokens = 6;
  request.ignore_end = true;
  request.log_probabilities = 1;
  Told alone[3], told[3];
  for (int i = 0; i < 3; ++i) {
    request.prompt = system + kWords[i];
    alone[i] = answer_alone(request, 4);
  }
  BatchGenerator batch = batch_of(4);
  const auto shared = static_cast<uint32_t>(batch.tokens(system).size()) / 8 * 8;
  REQUIRE(shared >= 16);
  // Two texts that come together alternate in computing the shared beginning and reuse each other's
  // parts; the third reuses all of it.
  for (int i = 0; i < 2; ++i) {
    request.prompt = system + kWords[i];
    submit(batch, request, told[i]);
  }
  while (batch.step()) {
  }
  CHECK(batch.statistics().reused_tokens == shared);
  CHECK(told[0].end->reused_tokens + told[1].end->reused_tokens == shared);
  request.prompt = system + kWords[2];
  submit(batch, request, told[2]);
  while (batch.step()) {
  }
  CHECK(batch.statistics().reused_tokens == 2 * shared);
  CHECK(told[2].end->reused_tokens == shared);
  CHECK(told[2].prompt.front() > shared);
  for (int i = 0; i < 3; ++i) {
    CHECK(told[i].ids == alone[i].ids);
    CHECK(told[i].bits == alone[i].bits);
  }
  CHECK(batch.statistics().prompt_tokens == told[0].end->prompt_ids.size() +
                                                told[1].end->prompt_ids.size() +
                                                told[2].end->prompt_ids.size());
  // The least recently used pages are evicted: when other prompts fill all pages, none of these is
  // left.
  std::mt19937 random(5);
  for (int i = 0; i < 26; ++i) {
    Told other;
    request.prompt = std::string(1, static_cast<char>('A' + i)) + words(random, 12);
    submit(batch, request, other);
    while (batch.step()) {
    }
  }
  const uint64_t before = batch.statistics().reused_tokens;
  Told again;
  request.prompt = system + kWords[0];
  submit(batch, request, again);
  while (batch.step()) {
  }
  CHECK(batch.statistics().reused_tokens == before);
  CHECK(again.bits == alone[0].bits);
}

TEST_CASE("Logits that are not finite end one request, and the others go on") {
  // The prompt has a token whose embedding overflows f32 when it is scaled, and which is never
  // chosen.
  const TemporaryFolder folder;
  std::filesystem::copy(small_decoder(), folder.path() / "model");
  const std::string path = (folder.path() / "model").string();
  const std::string usual = "The old house and the", other = usual + "!";
  const std::vector<uint32_t> of_usual = batch_of(1).tokens(usual),
                              of_other = batch_of(1).tokens(other);
  const uint32_t spoiled = of_other.back();
  REQUIRE(std::ranges::count(of_usual, spoiled) == 0);
  {
    std::fstream file(path + "/model.safetensors", std::ios::in | std::ios::out | std::ios::binary);
    uint64_t header = 0;
    file.read(reinterpret_cast<char*>(&header), sizeof(header));
    const float large = 5e37f;  // in embed_tokens, the first tensor: (420, 72) f32
    file.seekp(static_cast<std::streamoff>(8 + header + spoiled * uint64_t{72} * sizeof(float)));
    file.write(reinterpret_cast<const char*>(&large), sizeof(large));
  }
  const auto open = [&] {
    return BatchGenerator(shared_handle(), open_model(path),
                          {.generator = {.context = 64, .sequences = 3}, .prompt_tokens = 16});
  };
  BatchRequest request;
  request.prompt = usual;
  request.max_new_tokens = 12;
  request.ignore_end = true;
  request.log_probabilities = 0;
  request.logit_bias = {{spoiled, -kInfinity}};
  Told alone;
  {
    BatchGenerator batch = open();
    submit(batch, request, alone);
    while (batch.step()) {
    }
    REQUIRE(alone.ids.size() == 12);
  }
  BatchGenerator batch = open();
  Told told, lost, later;
  submit(batch, request, told);
  for (int i = 0; i < 4; ++i) batch.step();
  BatchRequest spoils = request;
  spoils.prompt = other;
  submit(batch, spoils, lost);
  submit(batch, request, later);
  while (batch.step()) {
  }
  CHECK_THAT(lost.error, ContainsSubstring("not finite"));
  CHECK_THAT(lost.error, ContainsSubstring("the embedding"));
  CHECK_FALSE(lost.end);
  CHECK(told.error.empty());
  CHECK(told.ids == alone.ids);
  CHECK(told.bits == alone.bits);
  CHECK(later.ids == alone.ids);
  CHECK(later.bits == alone.bits);
  CHECK(batch.running() == 0);
}
