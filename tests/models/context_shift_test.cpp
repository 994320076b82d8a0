// Texts that outgrow the context: which tokens are left out, and that the rest is computed as a
// text of its own.
#include "models/generation/context_shift.h"
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

constexpr uint32_t kShiftContext = 32, kKeep = 5, kNew = 70;
constexpr const char* kShiftPrompt = "The red hammer";

std::string shift_model() { return (data_dir() / "gemma3").string(); }

/// The expected tokens. Each text behind a shift reuses nothing of the texts before.
std::vector<uint32_t> shifted_by_hand(const std::vector<uint32_t>& prompt) {
  const Checkpoint checkpoint(shift_model());
  const DecoderModel model(shared_device(), checkpoint, read_decoder_config(checkpoint),
                           {.cache = DataType::kF16, .context = kShiftContext});
  SequenceSlots slots = slots_of(model.network(), 1, kShiftContext);
  std::vector<uint32_t> all = prompt;
  while (all.size() < prompt.size() + kNew) {
    const std::vector<uint32_t> text = shifted(all, kKeep, kShiftContext);
    const auto left = static_cast<uint32_t>(prompt.size() + kNew - all.size());
    const std::vector<uint32_t> ids =
        decode_sequence(slots, 0, {.prompt = text, .reuses = false}, {.max_new_tokens = left}).ids;
    slots.end(0, false);
    all.insert(all.end(), ids.begin(), ids.end());
  }
  return {all.begin() + static_cast<std::ptrdiff_t>(prompt.size()), all.end()};
}

}  // namespace

TEST_CASE("What is left out is the least number of halves") {
  CHECK(left_out_tokens(31, 4, 32) == 0);
  CHECK(left_out_tokens(32, 4, 32) == 14);
  CHECK(left_out_tokens(45, 4, 32) == 14);
  CHECK(left_out_tokens(46, 4, 32) == 28);
  for (uint32_t context : {4u, 5u, 7u, 64u}) {
    for (uint32_t keep = 0; keep + kLeastShiftRoom <= context; ++keep) {
      for (size_t count = 1; count < 5 * context; ++count) {
        const size_t gone = left_out_tokens(count, keep, context), half = (context - keep) / 2;
        INFO(count << " tokens, " << keep << " kept, context " << context << ": " << gone);
        CHECK(count - gone < context);
        CHECK((gone == 0) == (count < context));
        CHECK((gone == 0 || count - (gone - half) >= context));
        CHECK((gone == 0 || count - gone > keep));
      }
    }
  }
  const std::vector<uint32_t> ids = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  CHECK(shifted(ids, 2, 8) == std::vector<uint32_t>{0, 1, 5, 6, 7, 8, 9});
  CHECK(shifted(ids, 2, 11) == ids);
}

TEST_CASE("A full context shifts, and the answer is that of the tokens that stay") {
  const std::shared_ptr<Device> device = shared_handle();
  TextGenerator generator(device, shift_model(), {.context = kShiftContext});
  GenerateOptions options = {.max_new_tokens = kNew, .ignore_end = true};
  const Generation full = generator.generate(kShiftPrompt, options);
  CHECK(full.end == GenerateEnd::kContextFull);
  CHECK(full.left_out == 0);

  options.shift = true;
  options.keep = kKeep;
  const Generation shifting = generator.generate(kShiftPrompt, options);
  CHECK(shifting.end == GenerateEnd::kTokenLimit);
  CHECK(shifting.left_out > 0);
  CHECK(shifting.ids == shifted_by_hand(shifting.prompt_ids));
  CHECK(std::equal(full.ids.begin(), full.ids.end(), shifting.ids.begin()));
  CHECK(generator.statistics().new_tokens == kNew);
  for (const uint32_t steps : {1u, 7u}) {
    options.steps_per_submission = steps;
    CHECK(generator.generate(kShiftPrompt, options).ids == shifting.ids);
  }

  // With sampling, the same seed gives the same answer, whatever the steps per submission.
  options.sampling = Sampling{.temperature = 1.5f, .seed = 3};
  const Generation drawn = generator.generate(kShiftPrompt, options);
  options.steps_per_submission = 3;
  CHECK(generator.generate(kShiftPrompt, options).ids == drawn.ids);
  options.sampling.reset();

  // A prompt that is too long loses its oldest tokens; a conversation that continues computes only
  // the new ones.
  options.max_new_tokens = 3;
  std::string longest;
  for (int i = 0; i < 60; ++i) longest += "nails and a hammer ";
  const Generation cut = generator.generate(longest, options);
  CHECK(cut.left_out == left_out_tokens(cut.prompt_ids.size(), kKeep, kShiftContext));
  CHECK(cut.ids.size() == 3);
  CHECK(generator.statistics().prompt_tokens == cut.prompt_ids.size() - cut.left_out);
  const Generation on = generator.generate(longest + "and", options);
  if (on.left_out == cut.left_out) CHECK(generator.statistics().reused_tokens > kKeep);

  // A stop text appears after a shift that keeps only the tokens that the tokenizer puts in front.
  options = {.max_new_tokens = kNew, .ignore_end = true, .shift = true};
  const Generation whole = generator.generate(kShiftPrompt, options);
  const std::string stop = whole.text.substr(whole.text.size() * 3 / 4, 4);
  options.stop = {stop};
  CHECK(generator.generate(kShiftPrompt, options).text ==
        whole.text.substr(0, whole.text.find(stop)));

  options.keep = kShiftContext;
  CHECK_THROWS_AS(generator.generate(kShiftPrompt, options), SettingError);
  options.keep = kShiftContext - kLeastShiftRoom;
  CHECK(generator.generate(kShiftPrompt, options).ids.size() > kShiftContext);
  const std::vector<std::string> prompts = {kShiftPrompt};
  CHECK_THROWS_AS(generator.generate_all(prompts, options), SettingError);
  options.shift = false;
  CHECK_THAT(model_error([&] { generator.generate(longest, options); }).value_or(""),
             ContainsSubstring("go on without the oldest"));
}
