// Keys and values in q8_0: how they change logits, how they are saved, and what is refused.
#include <algorithm>
#include <cmath>

#include "models/generation/decoder_model.h"
#include "mulciber/text_generator.h"
#include "tests/catch.h"
#include "tests/device.h"
#include "tests/model_error.h"
#include "tests/small_decoder.h"

using namespace mulciber;
using namespace mulciber::tests;
using Catch::Matchers::ContainsSubstring;

namespace {

std::filesystem::path model_with_blocks() {  // heads of 32
  return fixtures_dir() / "gguf/tiny-F32.gguf";
}

std::vector<uint32_t> key_value_prompt(uint32_t length) {
  std::vector<uint32_t> ids;
  for (uint32_t i = 0; i < length; ++i) ids.push_back((11 + 37 * i + i * i) % 200 + 5);
  return ids;
}

std::vector<double> key_value_logits(DecoderModel& model, const std::vector<uint32_t>& ids) {
  const std::vector<std::string> wanted = {"logits"};
  return model.forward({{"input_ids", {{1, ids.size()}, {ids.begin(), ids.end()}}}}, wanted)
      .at("logits")
      .values;
}

}  // namespace

// A number in q8_0 is off by up to half of 1/127 of the largest of its block of 32: by 0.5 % of
// their usual size on average, where f16 is off by 0.02 %. Scores, and so weights, are off by more
// where scores are large. The bounds are shares of the logits' usual size, for the average and the
// largest error of small models with random weights.
constexpr double kUsual = 0.03, kLargest = 0.15;

TEST_CASE(
    "Keys and values in q8_0 move logits by no more than they may, and tokens only where two are "
    "as likely") {
  if (fixtures_dir().empty()) MULCIBER_SKIP("the reference models are not here");
  const std::string name = GENERATE("gguf/tiny-F32.gguf", "models/llama_realistic");
  INFO(name);
  const auto exact = open_decoder(fixtures_dir() / name, {.cache = DataType::kF32}),
             blocks = open_decoder(fixtures_dir() / name, {.cache = DataType::kQ8_0});
  const std::vector<uint32_t> prompt = key_value_prompt(40), ids = alone(*exact, prompt, 24);
  std::vector<uint32_t> all = prompt;
  all.insert(all.end(), ids.begin(), ids.end());
  const std::vector<double> wanted = key_value_logits(*exact, all),
                            got = key_value_logits(*blocks, all);
  double squares = 0, errors = 0, worst = 0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const double error = std::abs(got[i] - wanted[i]);
    squares += wanted[i] * wanted[i];
    errors += error * error;
    worst = std::max(worst, error);
  }
  const double usual = std::sqrt(squares / static_cast<double>(wanted.size()));
  INFO("logits of " << usual << " are off by "
                    << std::sqrt(errors / static_cast<double>(wanted.size())) << ", at most by "
                    << worst);
  CHECK(errors <= kUsual * kUsual * squares);
  CHECK(worst <= kLargest * usual);
  CHECK(worst > 0);  // blocks were used

  const std::vector<uint32_t> others = alone(*blocks, prompt, 24);
  const auto [at, other] = std::mismatch(ids.begin(), ids.end(), others.begin());
  if (at != ids.end()) {
    const uint64_t vocabulary = wanted.size() / all.size();
    const double* step =
        &wanted[(prompt.size() - 1 + static_cast<size_t>(at - ids.begin())) * vocabulary];
    INFO("token " << at - ids.begin() << " is " << *other << " and not " << *at);
    CHECK(step[*at] - step[*other] <= 2 * kLargest * usual);
  }
}

TEST_CASE("A sequence of q8_0 is saved, forked and restored, and mixes with no other type") {
  if (fixtures_dir().empty()) MULCIBER_SKIP("the reference models are not here");
  const auto model = open_decoder(model_with_blocks(), {.cache = DataType::kQ8_0});
  const std::vector<uint32_t> prompt = key_value_prompt(21), expected = alone(*model, prompt, 12);
  const auto held = static_cast<uint32_t>(prompt.size() - 1);
  SequenceSlots slots = slots_of(model->network(), 2, 96);
  slots.begin(0, {.prompt = prompt});
  slots.feed(0, held, false);
  const SavedSequence saved = slots.save(0);
  CHECK(std::equal(saved.ids.begin(), saved.ids.end(), prompt.begin(), prompt.end() - 1));
  slots.restore(1, saved, {});
  CHECK(slots.begin(1, {.prompt = prompt, .exact = false}) == held);
  const std::vector<uint32_t> both = {0, 1};
  std::vector<uint32_t> forked[2];
  for (const uint32_t slot : both) forked[slot].push_back(slots.feed(slot, 1, true).value());
  while (forked[0].size() < 12) {
    const std::vector<SequenceSlots::Choice> choices = slots.step(both);
    for (const uint32_t slot : both) forked[slot].push_back(choices[slot].value());
  }
  CHECK(forked[0] == expected);
  CHECK(forked[1] == expected);
  // A block of 32 numbers takes 34 bytes, and padding at most 15.
  const uint64_t columns = model->network().decoder.layers[0].attention.cache_columns();
  CHECK(saved.layers[0].size() <= held * (columns / 32 * 34 + 15));

  SequenceSlots later = slots_of(model->network(), 1, 40);
  later.restore(0, saved, {});
  CHECK(later.begin(0, {.prompt = prompt, .exact = false}) == held);
  later.end(0, true);
  CHECK(greedy(later, prompt, 12) == expected);

  const auto halves = open_decoder(model_with_blocks(), {.cache = DataType::kF16});
  SequenceSlots other = slots_of(halves->network(), 1, 96);
  CHECK_THAT(model_error([&] { other.restore(0, saved, {}); }).value_or(""),
             ContainsSubstring("another model"));
}

TEST_CASE("A prompt's file of q8_0 is read by q8_0 alone") {
  if (fixtures_dir().empty()) MULCIBER_SKIP("the reference models are not here");
  const std::shared_ptr<Device> device = shared_handle();
  const TemporaryFolder folder;
  const std::string file = (folder.path() / "kept").string(),
                    prompt = "The red hammer and the blue";
  const auto open = [&](KeyValueStorage storage) {
    return TextGenerator(device, model_with_blocks().string(),
                         {.key_values = storage, .context = 96});
  };
  const GenerateOptions options = {.max_new_tokens = 8, .ignore_end = true};
  TextGenerator first = open(KeyValueStorage::kQ8_0);
  const Generation expected = first.generate(prompt, options);
  first.save_cache(file);
  TextGenerator second = open(KeyValueStorage::kQ8_0), halves = open(KeyValueStorage::kF16);
  CHECK(second.load_cache(file) > 0);
  CHECK(second.generate(prompt, options).ids == expected.ids);
  CHECK(second.statistics().reused_tokens > 0);
  CHECK_THAT(model_error([&] { halves.load_cache(file); }).value_or(""),
             ContainsSubstring("other settings"));
  // Keys and values take little more than half of the memory, and the plan counts it.
  const auto bytes = [&](KeyValueStorage storage) {
    return TextGenerator::predict(*device, model_with_blocks().string(),
                                  {.key_values = storage, .context = 96})
        .key_value_bytes;
  };
  CHECK(bytes(KeyValueStorage::kQ8_0) ==
        bytes(KeyValueStorage::kF16) * 36 / 64);  // rows of 128 columns have 8 bytes to fill up
}

TEST_CASE("Keys and values in q8_0 are refused where they cannot be") {
  const auto problem = [](const ModelOptions& options) {
    return model_error([&] {
             const Checkpoint checkpoint(data_dir() / "gemma3");
             DecoderModel(shared_device(), checkpoint, read_decoder_config(checkpoint), options);
           })
        .value_or("");
  };
  CHECK_THAT(problem({.cache = DataType::kQ8_0}),
             ContainsSubstring("blocks of 32, the model's heads have 20"));
  CHECK_THAT(problem({.activations = DataType::kF16, .cache = DataType::kQ8_0}),
             ContainsSubstring("activations in 16 bits"));
}
