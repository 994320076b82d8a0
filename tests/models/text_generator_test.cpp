// Continued texts: prompts saved in files, streams, texts that stop an answer, several texts
// together.
#include "mulciber/text_generator.h"

#include <fstream>
#include <set>

#include "mulciber/error.h"
#include "runtime/choices.h"
#include "runtime/op.h"
#include "tests/catch.h"
#include "tests/device.h"
#include "tests/model_error.h"
#include "tests/small_decoder.h"
#include "tests/support.h"

using namespace mulciber;
using namespace mulciber::tests;
using Catch::Matchers::ContainsSubstring;
namespace fs = std::filesystem;

namespace {

/// For each op that multiplies with weights, the weight types that selection was asked for.
std::set<std::pair<Op, DataType>> weights_asked_for(const AskedProblems& asked) {
  std::set<std::pair<Op, DataType>> types;
  for (const auto& [key, one] : asked.problems) {
    if (one.problem.op == Op::kMatmul || one.problem.op == Op::kNormMatmul)
      types.emplace(one.problem.op, one.problem.types.weight);
  }
  return types;
}

}  // namespace

TEST_CASE("What a model is planned with asks selection for the weights that it has") {
  const std::string file = GENERATE("tiny-F16.gguf", "tiny-Q4_0.gguf", "tiny-Q4_K_M.gguf");
  const fs::path path = fixtures_dir() / "gguf" / file;
  if (!fs::exists(path)) MULCIBER_SKIP("the reference models are not here");
  INFO(file);
  const std::shared_ptr<Device> device = shared_handle();
  const auto planned = std::make_shared<AskedProblems>(),
             loaded = std::make_shared<AskedProblems>();
  device->watch_selection(planned);
  TextGenerator::predict(*device, path.string(), {.context = 64});
  device->watch_selection(loaded);
  TextGenerator generator(device, path.string(), {.context = 64});
  generator.generate("Hi", {.max_new_tokens = 2, .ignore_end = true});
  device->watch_selection(nullptr);
  const auto types = weights_asked_for(*loaded);
  CHECK_FALSE(types.empty());
  CHECK(weights_asked_for(*planned) == types);
}

TEST_CASE("A prompt is kept in a file, for the same model and settings") {
  const std::shared_ptr<Device> device = shared_handle();
  const TemporaryFolder folder;
  const std::string file = (folder.path() / "prompt").string(),
                    prompt = "The red hammer and the blue nails";
  const GenerateOptions options = {.max_new_tokens = 10, .ignore_end = true};
  TextGenerator first(device, small_decoder().string(), {.context = 64});
  const Generation expected = first.generate(prompt, options);
  first.save_cache(file);

  TextGenerator second(device, small_decoder().string(), {.context = 96});
  CHECK(second.load_cache(file) == expected.prompt_ids.size() + 9);
  CHECK(second.generate(prompt, options).ids == expected.ids);
  CHECK(second.statistics().reused_tokens == expected.prompt_ids.size() - 1);

  const std::vector<std::byte> taken = first.save_cache();
  TextGenerator third(device, small_decoder().string(), {.context = 64});
  CHECK(third.load_cache(taken) == expected.prompt_ids.size() + 9);
  CHECK(third.generate(prompt, options).ids == expected.ids);
  CHECK(third.statistics().reused_tokens == expected.prompt_ids.size() - 1);
  CHECK_THAT(model_error([&] { third.load_cache(std::span(taken).first(99)); }).value_or(""),
             ContainsSubstring("a snapshot"));

  TextGenerator half(device, small_decoder().string(),
                     {.load = {.half_activations = true}, .context = 64});
  CHECK_THAT(model_error([&] { half.load_cache(file); }).value_or(""),
             ContainsSubstring("another model, or other settings"));
  TextGenerator small(device, small_decoder().string(), {.context = 8});
  CHECK_THAT(model_error([&] { small.load_cache(file); }).value_or(""),
             ContainsSubstring("there is room for 8"));
  std::fstream bytes(file, std::ios::in | std::ios::out | std::ios::binary);
  bytes.seekp(200);
  bytes.put('!');
  bytes.close();
  CHECK_THAT(model_error([&] { second.load_cache(file); }).value_or(""),
             ContainsSubstring("is damaged"));
  fs::resize_file(file, 20);
  CHECK_THAT(model_error([&] { second.load_cache(file); }).value_or(""),
             ContainsSubstring("is not a saved prompt"));
  CHECK_THAT(model_error([&] { second.load_cache(file + "-not-there"); }).value_or(""),
             ContainsSubstring("not-there"));
  CHECK_THAT(model_error([&] { second.save_cache(file + "/in/no/folder"); }).value_or(""),
             ContainsSubstring("cannot be written"));
}

TEST_CASE("Conversations with one model share its weights, and know nothing of each other") {
  const std::shared_ptr<Device> device = shared_handle();
  const GenerateOptions options = {.max_new_tokens = 8, .ignore_end = true};
  const std::string texts[] = {"The red hammer and", "An old house"};
  std::vector<uint32_t> expected[2];
  for (int i = 0; i < 2; ++i)
    expected[i] = TextGenerator(device, small_decoder().string(), {.context = 64})
                      .generate(texts[i], options)
                      .ids;
  auto first = std::make_unique<TextGenerator>(device, small_decoder().string(),
                                               GeneratorOptions{.context = 64});
  const uint64_t before = device->memory().used();
  TextGenerator second = first->conversation(), little = first->conversation(24);
  const uint64_t taken = device->memory().used() - before;
  CHECK(taken > 0);
  CHECK(taken <=
        second.statistics().predicted_device_bytes + little.statistics().predicted_device_bytes);
  CHECK(little.statistics().predicted_device_bytes < second.statistics().predicted_device_bytes);
  CHECK(first->generate(texts[0], options).ids == expected[0]);
  CHECK(second.generate(texts[1], options).ids == expected[1]);
  CHECK(little.generate(texts[1], options).ids == expected[1]);
  const Generation again = first->generate(texts[0], options);
  CHECK(again.ids == expected[0]);
  CHECK(first->statistics().reused_tokens == again.prompt_ids.size() - 1);
  CHECK(little.context() == 24);
  CHECK_THROWS_AS(first->conversation(65), SettingError);
  first.reset();
  CHECK(second.generate(texts[0], options).ids == expected[0]);
}

TEST_CASE("A generator continues, stops at a text and reuses what it holds") {
  const std::shared_ptr<Device> device = shared_handle();
  TextGenerator generator(device, small_decoder().string(), {.context = 64});
  std::string streamed;
  GenerateOptions options = {.max_new_tokens = 20, .ignore_end = true};
  options.on_text = [&](std::string_view piece) { streamed += piece; };
  const Generation whole = generator.generate("The red hammer", options);
  CHECK(whole.end == GenerateEnd::kTokenLimit);
  CHECK(whole.ids.size() == 20);
  CHECK(streamed == whole.text);
  CHECK(generator.statistics().reused_tokens == 0);

  const Generation again = generator.generate("The red hammer", options);
  CHECK(again.ids == whole.ids);
  CHECK(generator.statistics().reused_tokens == whole.prompt_ids.size() - 1);

  // A stop text from the middle of the answer is not shown; the answer ends before it.
  REQUIRE(whole.text.size() > 8);
  const std::string stop = whole.text.substr(whole.text.size() / 2, 3);
  options.stop = {stop};
  streamed.clear();
  const Generation stopped = generator.generate("The red hammer", options);
  CHECK(stopped.end == GenerateEnd::kStopText);
  CHECK(stopped.text == whole.text.substr(0, whole.text.find(stop)));
  CHECK(streamed == stopped.text);

  options.stop.clear();
  CHECK(generator.default_sampling().temperature == 0);
  options.sampling = Sampling{.temperature = 1.5f, .seed = 3};
  const Generation drawn = generator.generate("The red hammer", options);
  CHECK(drawn.ids != whole.ids);
  options.steps_per_submission = 5;
  CHECK(generator.generate("The red hammer", options).ids == drawn.ids);
  options.sampling->top_p = -1;
  CHECK_THROWS_AS(generator.generate("The red hammer", options), SettingError);

  // Several texts run in two groups; each answer is the same as alone.
  options = {.max_new_tokens = 12, .ignore_end = true};
  const std::vector<std::string> prompts = {"The red hammer", "A", "Blue nails are in the old box"};
  TextGenerator several(device, small_decoder().string(), {.context = 64, .sequences = 2});
  const std::vector<Generation> together = several.generate_all(prompts, options);
  REQUIRE(together.size() == 3);
  for (size_t i = 0; i < prompts.size(); ++i) {
    const Generation single = generator.generate(prompts[i], options);
    CHECK(together[i].ids == single.ids);
    CHECK(together[i].text == single.text);
    CHECK(together[i].end == single.end);
  }
  CHECK(several.statistics().new_tokens == 36);
  options.stop = {together[2].text.substr(together[2].text.size() / 2, 3)};
  CHECK(several.generate_all(prompts, options)[2].text ==
        generator.generate(prompts[2], options).text);

  std::string longest(1000, 'a');
  CHECK_THAT(model_error([&] { generator.generate(longest, options); }).value_or(""),
             ContainsSubstring("context of 64"));
}
