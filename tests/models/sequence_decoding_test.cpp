// Sequences of a language model: together and alone, saved, sampled, in chunks, and step by step.
#include <algorithm>
#include <map>

#include "models/generation/decoder_model.h"
#include "models/generation/sequence_decoding.h"
#include "tests/catch.h"
#include "tests/device.h"
#include "tests/model_error.h"
#include "tests/small_decoder.h"

using namespace mulciber;
using namespace mulciber::tests;
using Catch::Matchers::ContainsSubstring;

namespace {

/// Sequences that are prefilled chunk by chunk, each in a slot of its own, and decoded together.
class SlotsTogether {
 public:
  explicit SlotsTogether(SequenceSlots& slots) : slots_(slots) {}

  /// Returns how many tokens of the prompt are in the cache.
  uint32_t begin(uint32_t slot, const SlotSequence& sequence) {
    prompt_[slot] = static_cast<uint32_t>(sequence.prompt.size());
    return slots_.begin(slot, sequence);
  }
  /// Prefills the next chunk of a prompt.
  void feed(uint32_t slot) {
    const uint32_t held = slots_.length(slot),
                   most = std::min(prompt_[slot] - held, slots_.shape().chunk),
                   fed = std::min(most, slots_.pass_tokens(held, most));
    const bool chooses = held + fed == prompt_[slot];
    const SequenceSlots::Choice choice = slots_.feed(slot, fed, chooses);
    if (!chooses) return;
    REQUIRE(choice);
    ids[slot].push_back(*choice);
    decoding_.push_back(slot);
  }
  /// Runs decode steps of all sequences whose prompt is prefilled.
  void step(uint32_t count = 1) {
    for (; count > 0; --count) {
      const std::vector<SequenceSlots::Choice> choices = slots_.step(decoding_);
      for (size_t i = 0; i < choices.size(); ++i) {
        REQUIRE(choices[i]);
        ids[decoding_[i]].push_back(*choices[i]);
      }
    }
  }
  void end() {
    for (const auto& [slot, size] : prompt_) slots_.end(slot, true);
  }

  std::map<uint32_t, std::vector<uint32_t>> ids;  // what each slot chose

 private:
  SequenceSlots& slots_;
  std::map<uint32_t, uint32_t> prompt_;  // tokens of each slot's prompt
  std::vector<uint32_t> decoding_;
};

std::vector<uint32_t> joined(std::vector<uint32_t> ids, const std::vector<uint32_t>& more) {
  ids.insert(ids.end(), more.begin(), more.end());
  return ids;
}

}  // namespace

TEST_CASE("Sequences of unequal lengths in slots go as each would alone") {
  const auto model = open_decoder(small_decoder());
  const std::map<uint32_t, std::vector<uint32_t>> prompts = {
      {0, prompt_of(3, 1)}, {1, prompt_of(41, 2)}, {2, prompt_of(1, 3)}, {4, prompt_of(17, 4)}};
  SequenceSlots slots = slots_of(model->network(), 5, 96);
  SlotsTogether together(slots);
  for (const auto& [slot, prompt] : prompts) {
    CHECK(together.begin(slot, {.prompt = prompt}) == 0);
    together.feed(slot);
  }
  together.step(19);
  for (const auto& [slot, prompt] : prompts) {
    INFO("slot " << slot);
    CHECK(together.ids[slot] == alone(*model, prompt, 20));
    CHECK(slots.length(slot) == prompt.size() + 19);
    CHECK(std::ranges::equal(slots.tokens(slot).first(prompt.size()), prompt));
  }
  CHECK(slots.length(3) == 0);
  together.end();
  CHECK(slots.length(0) == 0);

  // One sequence continues from its end, another one from an earlier position; the id that was
  // chosen last is not in the cache. They find their tokens whatever slots they get.
  const std::vector<uint32_t> whole = joined(joined(prompts.at(0), together.ids[0]), {9, 10});
  const std::vector<uint32_t> other = joined(prompts.at(4), {77});
  SlotsTogether later(slots);
  CHECK(later.begin(2, {.prompt = whole, .exact = false}) == 22);
  CHECK(later.begin(0, {.prompt = other, .exact = false}) == 17);
  for (const uint32_t slot : {0, 2}) later.feed(slot);
  later.step(5);
  CHECK(later.ids[2] == alone(*model, whole, 6));
  CHECK(later.ids[0] == alone(*model, other, 6));
}

TEST_CASE("Prompts are prefilled chunk by chunk while other sequences decode") {
  const auto model = open_decoder(small_decoder());
  const std::map<uint32_t, std::vector<uint32_t>> prompts = {
      {1, prompt_of(3, 1)}, {5, prompt_of(70, 2)}, {11, prompt_of(33, 3)}};
  SequenceSlots slots(shared_device(), model->network(), {.slots = 12, .context = 96, .chunk = 32});
  SlotsTogether together(slots);
  for (const auto& [slot, prompt] : prompts) together.begin(slot, {.prompt = prompt});
  for (const uint32_t slot : {1, 5, 11, 5, 11, 5}) {
    together.feed(slot);
    together.step();
  }
  together.step(10);
  CHECK(together.ids[1].size() == 17);
  CHECK(together.ids[5].size() == 12);
  CHECK(together.ids[11].size() == 13);
  for (const auto& [slot, prompt] : prompts) {
    INFO("slot " << slot);
    const auto tokens = static_cast<uint32_t>(together.ids[slot].size());
    CHECK(together.ids[slot] == alone(*model, prompt, tokens));
    CHECK(slots.length(slot) == prompt.size() + tokens - 1);
  }
}

TEST_CASE("A sequence is saved, and goes on in several slots and in other slots") {
  const auto model = open_decoder(small_decoder());
  const std::vector<uint32_t> prompt = prompt_of(21, 11), expected = alone(*model, prompt, 12);
  const std::vector<uint32_t> begin(prompt.begin(), prompt.end() - 1), other = {9, 8, 7, 6};
  SequenceSlots slots = slots_of(model->network(), 3, 96);
  CHECK(decode_sequence(slots, 0, {.prompt = begin}, {}).ids.empty());
  CHECK(slots.length(0) == 20);
  // A sequence between the others waits with a half of its prompt.
  slots.begin(1, {.prompt = other});
  slots.feed(1, 2, false);
  const SavedSequence saved = slots.save(0);
  CHECK(saved.ids == begin);
  slots.end(0, false);
  CHECK(slots.begin(2, {.prompt = prompt, .exact = false}) == 0);
  slots.end(2, false);
  slots.restore(2, saved, {});
  CHECK(slots.length(2) == 0);  // the slot is free again
  SlotsTogether together(slots);
  for (const uint32_t slot : {0, 2}) {
    CHECK(together.begin(slot, {.prompt = prompt, .exact = false}) == 20);
    together.feed(slot);
  }
  together.step(11);
  CHECK(together.ids[0] == expected);
  CHECK(together.ids[2] == expected);
  CHECK(slots.feed(1, 2, true) == alone(*model, other, 1).front());
  together.end();

  SequenceSlots single = slots_of(model->network(), 1, 40);
  single.restore(0, saved, {});
  SlotsTogether again(single);
  CHECK(again.begin(0, {.prompt = prompt, .exact = false}) == 20);
  again.feed(0);
  again.step(11);
  CHECK(again.ids[0] == expected);

  SequenceSlots small = slots_of(model->network(), 1, 16);
  CHECK_THAT(model_error([&] { small.restore(0, saved, {}); }).value_or(""),
             ContainsSubstring("holds 20 tokens, there is room for 16"));
}

TEST_CASE("The tokens are the same whatever the number of steps per submission") {
  const auto model = open_decoder(small_decoder());
  const std::vector<uint32_t> prompt = prompt_of(9, 5), expected = alone(*model, prompt, 40);
  REQUIRE(expected.size() == 40);
  // `end` is the first token from the middle on that did not occur before: it ends the sequence at
  // its first occurrence.
  size_t end = 15;
  while (end < 39 &&
         std::count(expected.begin(), expected.begin() + static_cast<std::ptrdiff_t>(end),
                    expected[end]) > 0)
    ++end;
  for (uint32_t steps : {1u, 2u, 7u, 32u}) {
    INFO(steps << " steps per submission");
    SequenceSlots slots = slots_of(model->network(), 1, 96);
    std::vector<uint32_t> told;
    DecodingOptions options = {.max_new_tokens = 40, .steps_per_submission = steps};
    options.on_token = [&](uint32_t id) { told.push_back(id); };
    const DecodedSequence whole = decode_sequence(slots, 0, {.prompt = prompt}, options);
    CHECK(whole.ids == expected);
    CHECK(whole.steps == 39);
    CHECK(told == expected);
    CHECK(slots.length(0) == prompt.size() + 39);
    slots.end(0, false);
    options.stops = {expected[end]};
    const DecodedSequence stopped = decode_sequence(slots, 0, {.prompt = prompt}, options);
    const auto first = std::find(expected.begin(), expected.end(), expected[end]);
    CHECK(stopped.ids == std::vector<uint32_t>(expected.begin(), first + 1));
    CHECK(slots.length(0) == prompt.size() + static_cast<size_t>(first - expected.begin()));
    // What the steps behind the stop wrote is not read.
    slots.end(0, true);
    const std::vector<uint32_t> longer = joined(prompt, stopped.ids);
    const std::vector<uint32_t> rest(first + 1, expected.end());
    options.stops.clear();
    options.max_new_tokens = static_cast<uint32_t>(rest.size());
    if (rest.empty()) continue;
    CHECK(decode_sequence(slots, 0, {.prompt = longer, .exact = false}, options).ids == rest);
  }
}

TEST_CASE("What is drawn depends on tokens, settings and seed alone") {
  const auto model = open_decoder(small_decoder());
  const std::vector<uint32_t> prompt = prompt_of(9, 5);
  const Sampling settings = {
      .temperature = 1.4f, .top_k = 60, .top_p = 0.97f, .repetition_penalty = 1.1f, .seed = 42};
  const auto draw = [&](const Sampling& s, uint32_t steps, std::vector<uint32_t> stops = {}) {
    SequenceSlots slots = slots_of(model->network(), 1, 96);
    return decode_sequence(
               slots, 0, {.prompt = prompt, .sampling = s},
               {.max_new_tokens = 40, .stops = std::move(stops), .steps_per_submission = steps})
        .ids;
  };
  const std::vector<uint32_t> expected = draw(settings, 1);
  REQUIRE(expected.size() == 40);
  CHECK(expected != alone(*model, prompt, 40));
  for (uint32_t steps : {2u, 7u, 32u}) {
    INFO(steps << " steps per submission");
    CHECK(draw(settings, steps) == expected);
  }
  Sampling other = settings;
  other.seed = 43;
  CHECK(draw(other, 2) != expected);
  CHECK(draw({.temperature = 0.5f, .top_k = 1, .seed = 9}, 2) == alone(*model, prompt, 40));

  // Nothing that is drawn behind the stop counts.
  const auto first = std::find(expected.begin(), expected.end(), expected[20]);
  CHECK(draw(settings, 32, {expected[20]}) == std::vector<uint32_t>(expected.begin(), first + 1));

  // Sequences run together, each with its own settings; one that continues a text of these tokens
  // draws as if it had gone on.
  SequenceSlots slots = slots_of(model->network(), 3, 96);
  SlotsTogether together(slots);
  const std::vector<uint32_t> beside = prompt_of(30, 8);
  together.begin(0, {.prompt = beside, .sampling = other});
  together.begin(2, {.prompt = prompt, .sampling = settings});
  for (const uint32_t slot : {0, 2}) together.feed(slot);
  together.step(24);
  CHECK(together.ids[2] == std::vector<uint32_t>(expected.begin(), expected.begin() + 25));
  together.end();
  SlotsTogether later(slots);
  const std::vector<uint32_t> longer = joined(prompt, together.ids[2]);
  CHECK(later.begin(2, {.prompt = longer, .exact = false, .sampling = settings}) ==
        longer.size() - 1);
  later.feed(2);
  later.step(14);
  CHECK(later.ids[2] == std::vector<uint32_t>(expected.begin() + 25, expected.end()));
  CHECK(std::ranges::equal(slots.tokens(2).first(prompt.size()), prompt));
}

TEST_CASE("A prompt is taken in by chunks, up to the last token of the context") {
  const auto model = open_decoder(small_decoder());
  const std::vector<uint32_t> prompt = prompt_of(93, 6);
  // Three are fed into the last three positions; the fourth is known and needs none.
  const std::vector<uint32_t> expected = alone(*model, prompt, 9);
  REQUIRE(expected.size() == 4);
  SequenceSlots slots = slots_of(model->network(), 1, 96);
  CHECK(slots.begin(0, {.prompt = prompt}) == 0);
  const auto size = static_cast<uint32_t>(prompt.size());
  std::vector<uint32_t> ids;
  for (uint32_t first = 0; first < size;) {
    const uint32_t most = std::min(first % 11 + 1, size - first),
                   count = std::min(most, slots.pass_tokens(first, most));
    first += count;
    const SequenceSlots::Choice choice = slots.feed(0, count, first == size);
    CHECK(choice.has_value() == (first == size));
    CHECK(slots.length(0) == first);
    if (choice) ids.push_back(*choice);
  }
  const uint32_t only[] = {0};
  while (slots.length(0) < 96) {
    const SequenceSlots::Choice choice = slots.step(only).front();
    REQUIRE(choice);
    ids.push_back(*choice);
  }
  CHECK(ids == expected);
  slots.end(0, false);

  const std::vector<uint32_t> full = prompt_of(96, 6), longer = prompt_of(97, 6);
  CHECK(decode_sequence(slots, 0, {.prompt = full}, {.max_new_tokens = 9}).ids.size() == 1);
  slots.end(0, false);
  CHECK_THAT(model_error([&] {
               decode_sequence(slots, 0, {.prompt = longer}, {.max_new_tokens = 1});
             }).value_or(""),
             ContainsSubstring("97 tokens, there is room for 96"));
}
