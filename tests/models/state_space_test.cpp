// Decoder-only models whose layers keep a state: sequences in passes and beside others, saved and
// continued, and options that they refuse.
#include <algorithm>
#include <map>

#include "models/generation/context_shift.h"
#include "models/generation/decoder_model.h"
#include "models/generation/decoding.h"
#include "mulciber/batch_generator.h"
#include "mulciber/embedding.h"
#include "mulciber/text_generator.h"
#include "tests/batch_requests.h"
#include "tests/catch.h"
#include "tests/device.h"
#include "tests/model_error.h"
#include "tests/small_decoder.h"

using namespace mulciber;
using namespace mulciber::tests;
using Catch::Matchers::ContainsSubstring;

namespace {

std::filesystem::path small_mamba() { return data_dir() / "gguf_decoders/mamba.gguf"; }

std::vector<uint32_t> ids_of(uint32_t length, uint32_t seed) {
  std::vector<uint32_t> ids = prompt_of(length, seed);
  for (uint32_t& id : ids) id = id % 290 + 5;
  return ids;
}

/// Decodes greedily, each token by a pass over the whole text: no state is kept.
std::vector<uint32_t> without_state(DecoderModel& model, std::vector<uint32_t> ids, size_t count) {
  const size_t first = ids.size(), vocabulary = model.network().vocabulary;
  const std::vector<std::string> wanted = {"logits"};
  while (ids.size() < first + count) {
    const NamedArrays outputs =
        model.forward({{"input_ids", {{1, ids.size()}, {ids.begin(), ids.end()}}}}, wanted);
    const std::vector<double>& logits = outputs.at("logits").values;
    const auto last = logits.end() - static_cast<std::ptrdiff_t>(vocabulary);
    ids.push_back(static_cast<uint32_t>(std::max_element(last, logits.end()) - last));
  }
  return {ids.begin() + static_cast<std::ptrdiff_t>(first), ids.end()};
}

/// Sequences that decode beside each other, and what they have chosen.
struct StatesBeside {
  SequenceSlots& slots;
  size_t tokens = 0;                                      // a sequence ends with so many
  std::map<uint32_t, std::vector<uint32_t>> chosen = {};  // by slot

  /// Prefills the rest of a slot's prompt.
  void prefill(uint32_t slot, const std::vector<uint32_t>& prompt) {
    const auto size = static_cast<uint32_t>(prompt.size());
    while (slots.length(slot) < size) {
      const uint32_t held = slots.length(slot), fed = std::min(size - held, slots.shape().chunk);
      const bool last = held + fed == size;
      const SequenceSlots::Choice choice = slots.feed(slot, fed, last);
      if (last) chosen[slot].push_back(choice.value());
    }
  }
  /// Runs a decode step of the sequences that have not ended. Returns false where all have.
  bool step() {
    std::vector<uint32_t> decoding;
    for (const auto& [slot, ids] : chosen)
      if (ids.size() < tokens) decoding.push_back(slot);
    if (decoding.empty()) return false;
    const std::vector<SequenceSlots::Choice> choices = slots.step(decoding);
    for (size_t i = 0; i < decoding.size(); ++i) {
      std::vector<uint32_t>& ids = chosen[decoding[i]];
      ids.push_back(choices[i].value());
      if (ids.size() == tokens) slots.end(decoding[i], false);
    }
    return true;
  }
};

/// How many tokens of a prompt the state of the only slot has taken in.
size_t state_goes_on_from(SequenceSlots& slots, const std::vector<uint32_t>& prompt) {
  const uint32_t held = slots.begin(0, {.prompt = prompt, .exact = false});
  slots.end(0, true);
  return held;
}

std::vector<uint32_t> with_more(std::vector<uint32_t> ids, const std::vector<uint32_t>& more) {
  ids.insert(ids.end(), more.begin(), more.end());
  return ids;
}

}  // namespace

TEST_CASE("A state that is kept gives the tokens of passes over the whole text") {
  const auto model = open_decoder(small_mamba());
  for (const uint32_t length : {1u, 3u, 9u, 33u, 75u}) {
    INFO(length << " tokens");
    const std::vector<uint32_t> prompt = ids_of(length, 5);
    const std::vector<uint32_t> expected = without_state(*model, prompt, 10);
    CHECK(alone(*model, prompt, 10) == expected);
    // The sequence runs among others, in passes of 32 tokens. One of them ends while another one
    // waits within its prompt.
    SequenceSlots slots(shared_device(), model->network(),
                        {.slots = 12, .context = 96, .chunk = 32});
    StatesBeside found = {.slots = slots, .tokens = 10};
    const std::vector<uint32_t> longer = ids_of(70, 8), brief = ids_of(2, 9);
    slots.begin(0, {.prompt = longer});
    slots.begin(4, {.prompt = prompt});
    slots.begin(7, {.prompt = brief});
    slots.feed(0, 32, false);
    found.prefill(7, brief);
    for (int i = 0; i < 4; ++i) found.step();
    found.prefill(4, prompt);
    while (found.chosen[7].size() < 10) found.step();
    found.prefill(0, longer);
    while (found.step()) {
    }
    CHECK(found.chosen[4] == expected);
    CHECK(found.chosen[0] == alone(*model, longer, 10));
    CHECK(found.chosen[7] == alone(*model, brief, 10));
  }
}

TEST_CASE("A state goes on from the end of a sequence or of its prompt, in other slots too") {
  const auto model = open_decoder(small_mamba());
  const std::vector<uint32_t> prompt = ids_of(21, 11), expected = alone(*model, prompt, 12);
  const std::vector<uint32_t> begin(prompt.begin(), prompt.end() - 1);
  SequenceSlots slots = slots_of(model->network(), 1, 96);
  decode_sequence(slots, 0, {.prompt = begin, .exact = false}, {.max_new_tokens = 0});
  const SavedSequence saved = slots.save(0);
  slots.end(0, true);
  CHECK(state_goes_on_from(slots, prompt) == begin.size());
  CHECK(greedy(slots, prompt, 12) == expected);
  // The last token that was chosen is not in the state.
  const std::vector<uint32_t> whole = with_more(with_more(prompt, expected), {6, 5});
  CHECK(state_goes_on_from(slots, whole) == prompt.size() + 11);
  CHECK(greedy(slots, whole, 9) == alone(*model, whole, 9));
  // A prompt that ends within the last one begins anew. One that parts behind it goes on from its
  // end.
  CHECK(state_goes_on_from(slots, prompt) == 0);
  CHECK(greedy(slots, prompt, 12) == expected);
  const std::vector<uint32_t> parted = with_more(prompt, {expected[0] == 9 ? 8u : 9u});
  CHECK(state_goes_on_from(slots, parted) == prompt.size());
  CHECK(greedy(slots, parted, 9) == alone(*model, parted, 9));
  const std::vector<uint32_t> early = with_more(begin, {prompt.back() == 9 ? 8u : 9u, 7});
  CHECK(state_goes_on_from(slots, early) == 0);
  CHECK(greedy(slots, early, 9) == alone(*model, early, 9));

  // A sequence that may share only what prefill computes begins anew.
  CHECK(slots.begin(0, {.prompt = with_more(early, {7}), .exact = true}) == 0);
  slots.end(0, false);

  SequenceSlots other = slots_of(model->network(), 1, 40);
  other.restore(0, saved, {});
  CHECK(state_goes_on_from(other, prompt) == begin.size());
  CHECK(greedy(other, prompt, 12) == expected);
}

TEST_CASE("A sequence with steps given past its end goes on from the end of its prompt") {
  const auto model = open_decoder(small_mamba());
  const std::vector<uint32_t> prompt = ids_of(9, 5), expected = alone(*model, prompt, 30);
  const auto first = std::find(expected.begin(), expected.end(), expected[12]);
  const auto steps_taken = static_cast<uint32_t>(first - expected.begin());
  const std::vector<uint32_t> whole =
      with_more(with_more(prompt, {expected.begin(), first + 1}), {77});
  for (const uint32_t together : {1u, 7u, 32u}) {
    INFO(together << " steps in one submission");
    SequenceSlots slots = slots_of(model->network(), 1, 96);
    const DecodingOptions options = {
        .max_new_tokens = 30, .stops = {*first}, .steps_per_submission = together};
    CHECK(decode_sequence(slots, 0, {.prompt = prompt, .exact = false}, options).ids ==
          std::vector<uint32_t>(expected.begin(), first + 1));
    slots.end(0, true);
    const bool ahead = steps_taken % steps_at_once(shared_device(), together) != 0;
    CHECK(state_goes_on_from(slots, whole) == prompt.size() + (ahead ? 0 : steps_taken));
    CHECK(greedy(slots, whole, 9) == alone(*model, whole, 9));
  }
}

namespace {

std::string fixture() { return (fixtures_dir() / "models2/mamba").string(); }

}  // namespace

TEST_CASE("A conversation of a model that keeps a state reads what is new alone") {
  if (fixtures_dir().empty()) MULCIBER_SKIP("the reference models are not here");
  TextGenerator generator(shared_handle(), fixture(), {.context = 96}),
      fresh(shared_handle(), fixture(), {.context = 96});
  const GenerateOptions options = {.max_new_tokens = 10, .ignore_end = true};
  const std::string prompt = "The red hammer strikes the anvil.";
  const Generation first = generator.generate(prompt, options);
  // The state may follow a text that the tokenizer would cut differently, so it is found by ids.
  const auto bytes = generator.save_cache();
  const Generation again = generator.generate(prompt, options);
  CHECK(generator.statistics().reused_tokens == 0);
  CHECK(again.ids == first.ids);
  CHECK(fresh.load_cache(bytes) == first.prompt_ids.size() + first.ids.size() - 1);

  const GenerateOptions none = {.max_new_tokens = 1, .ignore_end = true};
  fresh.generate("The red hammer", none);
  const Generation longer = fresh.generate(prompt, options);
  CHECK(fresh.statistics().reused_tokens == fresh.count_tokens("The red hammer"));
  CHECK(longer.ids == first.ids);

  // A prompt that continues differently from the answer goes back to the state at the prompt's end.
  generator.generate(prompt, options);
  const Generation other = generator.generate(prompt + " And then", options);
  CHECK(generator.statistics().reused_tokens == first.prompt_ids.size());
  CHECK(other.ids == TextGenerator(shared_handle(), fixture(), {.context = 96})
                         .generate(prompt + " And then", options)
                         .ids);
  generator.generate("The red", none);
  CHECK(generator.statistics().reused_tokens == 0);

  // When a text outgrows the context, the tokens that stay are read again.
  GenerateOptions shifting = {.max_new_tokens = 60, .ignore_end = true};
  shifting.shift = true;
  shifting.keep = 3;
  TextGenerator narrow(shared_handle(), fixture(), {.context = 40});
  const Generation shifted_text = narrow.generate(prompt, shifting);
  CHECK(shifted_text.left_out > 0);
  const auto model = open_decoder(fixture());
  std::vector<uint32_t> all = shifted_text.prompt_ids;
  const size_t size = all.size() + 60;
  while (all.size() < size) {
    SequenceSlots slots = slots_of(model->network(), 1, 40);
    all = with_more(all,
                    greedy(slots, shifted(all, 3, 40), static_cast<uint32_t>(size - all.size())));
  }
  CHECK(std::equal(shifted_text.ids.begin(), shifted_text.ids.end(), all.end() - 60));
}

TEST_CASE("An answer in slices, ended early or not, leaves a state that may be gone on from") {
  if (fixtures_dir().empty()) MULCIBER_SKIP("the reference models are not here");
  const std::string prompt = "The red hammer strikes the anvil.";
  const GenerateOptions options = {.max_new_tokens = 12, .ignore_end = true};
  const auto load = [] { return TextGenerator(shared_handle(), fixture(), {.context = 96}); };
  TextGenerator whole = load(), sliced = load();
  const std::vector<uint32_t> expected = whole.generate(prompt, options).ids;
  const std::vector<uint32_t> others = whole.generate("Why did", options).ids;
  for (const size_t tokens : {0, 1, 5, 12}) {
    INFO("ended after " << tokens << " tokens");
    std::vector<uint32_t> found;
    {
      GenerationTask task(sliced, prompt, options);
      while (!task.done()) {
        task.step(200);
        task.wait();
        if (tokens < 12 && task.tokens() >= tokens) task.cancel();
      }
      found = task.result().ids;
    }
    CHECK(found.size() <= expected.size());
    CHECK(std::equal(found.begin(), found.end(), expected.begin()));
    if (tokens == 12) CHECK(found == expected);
    CHECK(sliced.generate(tokens % 2 == 0 ? prompt : "Why did", options).ids ==
          (tokens % 2 == 0 ? expected : others));
  }
}

TEST_CASE("Answers of a model that keeps a state do not depend on batch composition, bit for bit") {
  if (fixtures_dir().empty()) MULCIBER_SKIP("the reference models are not here");
  const std::shared_ptr<const OpenModel> model = open_model(fixture());
  const auto batch_of = [&](uint32_t sequences) {
    BatchGeneratorOptions options;
    options.generator.context = 96;
    options.generator.sequences = sequences;
    options.prompt_tokens = 8;
    return BatchGenerator(shared_handle(), model, options);
  };
  std::mt19937 random(3);
  for (const uint32_t sequences : {3u, 8u}) {
    BatchGenerator batch = batch_of(sequences);
    std::vector<Told> told(16);
    std::vector<BatchRequest> requests;
    for (size_t i = 0; i < told.size(); ++i) {
      requests.push_back(some_request(random));
      requests.back().logit_bias.clear();
      requests.back().log_probabilities = 1;
    }
    for (size_t next = 0; next < told.size() || batch.running() + batch.waiting() > 0;) {
      while (next < told.size() && random() % 3 == 0) {
        submit(batch, requests[next], told[next]);
        ++next;
      }
      batch.step();
    }
    for (size_t i = 0; i < told.size(); ++i) {
      INFO(sequences << " slots, request " << i);
      BatchGenerator single = batch_of(sequences);
      Told alone;
      submit(single, requests[i], alone);
      while (single.step()) {
      }
      REQUIRE(told[i].end);
      CHECK(told[i].ids == alone.ids);
      CHECK(told[i].bits == alone.bits);
      CHECK(told[i].text == alone.text);
    }
  }
}

TEST_CASE("A prompt reads its beginning itself, whatever others have read of it") {
  if (fixtures_dir().empty()) MULCIBER_SKIP("the reference models are not here");
  BatchGeneratorOptions options;
  options.generator.context = 96;
  options.generator.sequences = 2;
  options.prompt_tokens = 8;
  const std::shared_ptr<const OpenModel> model = open_model(fixture());
  const auto make = [&] { return BatchGenerator(shared_handle(), model, options); };
  BatchGenerator batch = make();
  const auto answer = [](BatchGenerator& of, const std::string& prompt) {
    BatchRequest request;
    request.prompt = prompt;
    request.max_new_tokens = 6;
    request.ignore_end = true;
    request.log_probabilities = 1;
    Told told;
    submit(of, request, told);
    while (of.step()) {
    }
    return told;
  };
  const std::string first = "The red hammer strikes the anvil.";  // 21 tokens
  for (const std::string& prompt : {first, first + " Why?", first + " Why? And then what?",
                                    first + " But", std::string("Why did the smith melt?")}) {
    INFO(prompt);
    BatchGenerator fresh = make();
    const Told alone = answer(fresh, prompt), found = answer(batch, prompt);
    CHECK(found.ids == alone.ids);
    CHECK(found.bits == alone.bits);
    CHECK(batch.statistics().reused_tokens == 0);
  }
}

TEST_CASE("What has no meaning for a model that keeps a state is refused by name") {
  const Checkpoint checkpoint(small_mamba());
  const auto refused = [&](const ModelOptions& options) {
    return model_error([&] {
             DecoderModel(shared_device(), checkpoint, read_decoder_config(checkpoint), options);
           })
        .value_or("no error");
  };
  CHECK_THAT(refused({.activations = DataType::kF16}),
             ContainsSubstring("layers that keep a state"));
  CHECK_THAT(refused({.masked_heads = {{1, 0}}}), ContainsSubstring("2 layers of 0 heads"));
  if (fixtures_dir().empty()) MULCIBER_SKIP("the reference models are not here");
  TextGenerator generator(shared_handle(), fixture(), {.context = 64});
  const auto message = [&](const GenerateOptions& options) {
    try {
      generator.generate("The red hammer", options);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  GenerateOptions options = {.max_new_tokens = 4};
  options.attention = true;
  CHECK_THAT(message(options), ContainsSubstring("has no attention"));
  options.attention = false;
  options.prompt_lookup = 2;
  CHECK_THAT(message(options), ContainsSubstring("cannot be taken back"));
  options.prompt_lookup = 0;
  CHECK(message(options) == "no error");
}
