// Frames that an application drops: slices that were recorded and never submitted are taken back,
// and recorded again they give the bits of a whole run.
#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "mulciber/embedding.h"
#include "mulciber/error.h"
#include "mulciber/image_task.h"
#include "mulciber/mulciber_c.h"
#include "runtime/device.h"
#include "tests/application_destination.h"
#include "tests/c_session.h"
#include "tests/catch.h"
#include "tests/small_decoder.h"
#include "tests/support.h"
#include "tests/vulkan_application.h"

using namespace mulciber;
using namespace mulciber::tests;
using Catch::Matchers::ContainsSubstring;

namespace {

const std::string kDroppedText = "The old house stands near the river.";
const std::string kDroppedPrompt = "The red hammer and the blue nails of the old house";

/// An application that drops frames: it records slices of random budgets, submits the first of a
/// few, and discards the others.
class DroppingApplication {
 public:
  explicit DroppingApplication(const VulkanApplication& application, unsigned seed = 1)
      : submitted_(application), dropped_(application), random_(seed) {}

  void run(FrameTask& task) {
    while (!task.done()) frame(task);
  }
  /// Submits a slice, and drops up to three that follow it.
  void frame(FrameTask& task) {
    FrameSlice first;
    submitted_.run([&](VkCommandBuffer commands) { first = task.record(commands, budget()); });
    REQUIRE(first.number > last_);
    last_ = first.number;
    const bool told_before = random_() % 2 == 0;
    if (told_before) task.completed(first.number);
    uint64_t from = 0;
    dropped_.drop([&](VkCommandBuffer commands) {
      for (auto frames = random_() % 4; frames > 0; --frames) {
        const FrameSlice slice = task.record(commands, budget());
        if (slice.number == 0) break;
        REQUIRE(slice.number > last_);
        last_ = slice.number;
        if (from == 0) from = slice.number;
      }
    });
    if (from > 0) {
      task.discard(from);
      ++dropped_frames;
    }
    if (!told_before) task.completed(first.number);
  }

  int dropped_frames = 0;

 private:
  double budget() { return static_cast<double>(random_() % 900); }
  ApplicationCommands submitted_, dropped_;
  std::mt19937 random_;
  uint64_t last_ = 0;  // the number of the slice before
};

void check_equal(const Generation& found, const Generation& expected) {
  CHECK(found.ids == expected.ids);
  CHECK(found.text == expected.text);
  CHECK(found.end == expected.end);
}

std::string discard_refusal(FrameTask& task, uint64_t number) {
  try {
    task.discard(number);
  } catch (const SettingError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("A translation whose frames are dropped now and then is that of the whole call") {
  VulkanApplication application;
  const auto device = adopt_device(application.lent());
  Translator translator(device, bundled_model());
  for (const uint32_t beams : {1u, 4u}) {
    const TranslateOptions options = {.beams = beams};
    const Translation whole = translator.translate(kDroppedText, options);
    TranslationTask task(translator, kDroppedText, options);
    const uint64_t allocations = device->counters().allocations,
                   pipelines = device->counters().pipelines;
    DroppingApplication dropping(application, beams);
    dropping.run(task);
    CHECK(dropping.dropped_frames > 0);
    CHECK(device->counters().allocations == allocations);
    CHECK(device->counters().pipelines == pipelines);
    const Translation cut = task.result();
    CHECK(cut.ids == whole.ids);
    CHECK(cut.score == whole.score);
    CHECK(cut.text == whole.text);
  }
}

TEST_CASE("An answer whose frames are dropped now and then is that of the whole call") {
  VulkanApplication application;
  const auto device = adopt_device(application.lent());
  TextGenerator whole(device, small_decoder().string(), {.context = 96}),
      cut(device, small_decoder().string(), {.context = 96}),
      steady(device, small_decoder().string(), {.context = 96});
  int dropped_frames = 0;
  const uint32_t vocabulary = whole.vocabulary();
  const Grammar grammar = Grammar::regex("[a-z]{3,5}(-[0-9]{2})+");
  const GenerateOptions cases[] = {
      {.max_new_tokens = 12, .ignore_end = true},
      {.sampling = Sampling{.temperature = 1, .top_k = 40, .repetition_penalty = 1.1f, .seed = 5},
       .max_new_tokens = 12,
       .ignore_end = true},
      {.max_new_tokens = 12, .grammar = grammar}};
  for (const GenerateOptions& options : cases) {
    // The second turn begins with tokens that the context holds.
    std::string prompt = kDroppedPrompt;
    for (int turn = 0; turn < 2; ++turn) {
      const Generation expected = whole.generate(prompt, options);
      const Destination logits(*device, uint64_t{16} * vocabulary),
          same(*device, uint64_t{16} * vocabulary);
      GenerationTask task(cut, prompt, options, {.logits = logits.buffer, .states = {}});
      DroppingApplication dropping(application, static_cast<unsigned>(turn));
      dropping.run(task);
      dropped_frames += dropping.dropped_frames;
      check_equal(task.result(), expected);
      GenerationTask plain(steady, prompt, options, {.logits = same.buffer, .states = {}});
      finish(plain);
      check_equal(plain.result(), expected);
      const size_t known = expected.ids.size() * vocabulary;
      CHECK(std::equal(logits.floats(), logits.floats() + known, same.floats()));
      prompt += expected.text + " and then";
    }
  }
  CHECK(dropped_frames > 2);
}

TEST_CASE("An answer that is cancelled behind a dropped frame leaves a context that goes on") {
  VulkanApplication application;
  const auto device = adopt_device(application.lent());
  TextGenerator generator(device, small_decoder().string(), {.context = 64}),
      fresh(device, small_decoder().string(), {.context = 64});
  const GenerateOptions options = {.max_new_tokens = 6, .ignore_end = true};
  ApplicationCommands dropped(application);
  for (int frames = 0; frames < 8; ++frames) {
    GenerationTask task(generator, kDroppedPrompt, options);
    DroppingApplication dropping(application, static_cast<unsigned>(frames));
    for (int i = 0; i < frames && !task.done(); ++i) dropping.frame(task);
    if (task.done()) continue;
    FrameSlice slice;
    dropped.drop([&](VkCommandBuffer commands) { slice = task.record(commands, 500); });
    const bool cancels_first = frames % 2 == 0;
    if (cancels_first) task.cancel();
    task.discard(slice.number);
    if (!cancels_first) task.cancel();
    REQUIRE(task.done());
    CHECK(task.result().end == GenerateEnd::kCancelled);
  }
  CHECK(generator.generate(kDroppedPrompt, options).ids ==
        fresh.generate(kDroppedPrompt, options).ids);
}

TEST_CASE("An answer's task that is destroyed calls nothing") {
  const VulkanApplication application;
  const auto device = adopt_device(application.lent());
  TextGenerator generator(device, small_decoder().string(), {.context = 64});
  GenerateOptions options;
  options.max_new_tokens = 5;
  options.ignore_end = true;
  // The text may begin the stop text, so that all of it is held back until the answer ends.
  options.stop = {generator.generate(kDroppedPrompt, options).text + "."};
  int calls = 0;
  options.on_text = [&](std::string_view) { ++calls; };
  {
    GenerationTask task(generator, kDroppedPrompt, options);
    finish(task);
    CHECK(calls == 0);
  }
  CHECK(calls == 0);
  GenerationTask asked(generator, kDroppedPrompt, options);
  finish(asked);
  CHECK(asked.result().text + "." == options.stop.front());
  CHECK(calls == 1);
}

TEST_CASE("Vectors and maps whose last frame was dropped are copied once it is recorded again") {
  VulkanApplication application;
  const auto device = adopt_device(application.lent());
  ApplicationCommands commands(application);
  TextEncoder encoder(device, small_encoder());
  EmbeddingTask embedding(encoder, kDroppedText);
  Translator translator(device, bundled_model());
  const Translation translation = translator.translate(kDroppedText, {.attention = true});
  AttentionTask attention(translator, translation);
  ImageEncoder seeing(device, digits());
  Image image = {.width = 20, .height = 30, .rgb = {}};
  for (uint32_t i = 0; i < 3 * image.width * image.height; ++i)
    image.rgb.push_back(static_cast<uint8_t>(i * i));
  ImageTask vector(seeing, image, {.normalize = false, .attention = true});

  const auto run = [&](FrameTask& task, const auto& recorded) {
    DroppingApplication(application).run(task);
    CHECK(recorded());
  };
  const auto drop_all = [&](FrameTask& task, const auto& recorded) {
    uint64_t first = 0;
    commands.drop([&](VkCommandBuffer buffer) {
      while (!recorded()) {
        const FrameSlice slice = task.record(buffer, 1e9);
        REQUIRE(slice.number > 0);
        if (first == 0) first = slice.number;
      }
    });
    task.discard(first);
    CHECK_FALSE(recorded());
  };
  const auto twice = [&](FrameTask& task, const auto& recorded) {
    drop_all(task, recorded);
    run(task, recorded);
  };
  twice(embedding, [&] { return embedding.recorded(); });
  CHECK(embedding.result().values == encoder.embed(kDroppedText).values);
  twice(vector, [&] { return vector.recorded(); });
  CHECK(vector.result().values == seeing.embed(image, {.normalize = false}).values);

  const AttentionMaps& maps = *translation.attention;
  const uint64_t size = uint64_t{maps.target_length} * maps.source_length;
  const Destination map(*device, size);
  for (int restarts = 0; restarts < 2; ++restarts) {
    twice(attention, [&] { return attention.recorded(); });
    run_commands(*device, [&](VkCommandBuffer buffer) {
      attention.record_attention(buffer, map.buffer, {AttentionKind::kCross, 0, 0});
    });
    CHECK(std::equal(map.floats(), map.floats() + size, maps.cross.begin()));
    if (restarts == 0) attention.restart(translation);
  }
}

TEST_CASE("Only slices that were recorded and have not ended can be discarded") {
  VulkanApplication application;
  Translator translator(adopt_device(application.lent()), bundled_model());
  ApplicationCommands commands(application);
  TranslationTask task(translator, kDroppedText);
  CHECK_THAT(discard_refusal(task, 0), ContainsSubstring("slice 0: was never recorded"));
  CHECK_THAT(discard_refusal(task, 1), ContainsSubstring("slice 1: was never recorded"));
  FrameSlice first, second, third;
  commands.run([&](VkCommandBuffer buffer) { first = task.record(buffer, 1); });
  CHECK_THAT(discard_refusal(task, first.number + 1), ContainsSubstring("was never recorded"));
  task.completed(first.number);
  CHECK_THAT(discard_refusal(task, first.number), ContainsSubstring("is completed"));
  commands.drop([&](VkCommandBuffer buffer) {
    second = task.record(buffer, 1);
    third = task.record(buffer, 1);
  });
  task.discard(second.number);
  CHECK_THAT(discard_refusal(task, second.number), ContainsSubstring("was discarded before"));
  CHECK_THAT(discard_refusal(task, third.number), ContainsSubstring("was discarded before"));
  const FrameStep step = task.step(1);
  CHECK(step.slice.number > third.number);
  CHECK_THAT(discard_refusal(task, step.slice.number),
             ContainsSubstring("was submitted by step()"));
  finish(task);
  CHECK(task.result().text == translator.translate(kDroppedText).text);
}

TEST_CASE("A task is told of the end of slices that it has, in any order") {
  VulkanApplication application;
  Translator translator(adopt_device(application.lent()), bundled_model());
  ApplicationCommands commands(application);
  TranslationTask task(translator, kDroppedText);
  const auto refused = [&](uint64_t number) -> std::string {
    try {
      task.completed(number);
    } catch (const SettingError& error) {
      return error.what();
    }
    return "";
  };
  CHECK(refused(0).empty());
  CHECK_THAT(refused(1), ContainsSubstring("slice 1: was never recorded: 0 is the last"));
  FrameSlice first, second, third;
  commands.run([&](VkCommandBuffer buffer) {
    first = task.record(buffer, 1);
    second = task.record(buffer, 1);
  });
  CHECK_THAT(refused(77), ContainsSubstring("slice 77: was never recorded: 2 is the last"));
  CHECK(refused(second.number).empty());
  CHECK(refused(first.number).empty());  // ended with the second
  CHECK(refused(second.number).empty());
  commands.drop([&](VkCommandBuffer buffer) { third = task.record(buffer, 1); });
  task.discard(third.number);
  CHECK_THAT(refused(third.number), ContainsSubstring("slice 3: was discarded"));
  while (!task.done()) {
    const FrameStep step = task.step(2000);
    CHECK(refused(step.slice.number).empty());  // which step() finds out by itself
    task.wait();
  }
  CHECK(task.result().text == translator.translate(kDroppedText).text);
}

TEST_CASE("Frames are dropped in C as in C++") {
  const Session session(bundled_model());
  MulciberContext* c = session.c;
  MulciberTranslator* translator = nullptr;
  MulciberTask* task = nullptr;
  REQUIRE(mulciber_load_translator(c, session.device, session.model, nullptr, &translator) ==
          MULCIBER_OK);
  REQUIRE(mulciber_begin_translation(c, translator, kDroppedText.c_str(), nullptr, &task) ==
          MULCIBER_OK);
  ApplicationCommands commands(session.application);
  MulciberSlice slice = {sizeof(slice)};
  const auto record = [&](VkCommandBuffer buffer) {
    REQUIRE(mulciber_record(c, task, buffer, 2000, &slice) == MULCIBER_OK);
  };
  for (int frame = 0; !mulciber_is_done(task); ++frame) {
    if (frame % 3 == 2) {
      commands.drop(record);
      REQUIRE(mulciber_discard(c, task, slice.number) == MULCIBER_OK);
    } else {
      commands.run(record);
      REQUIRE(mulciber_completed(c, task, slice.number) == MULCIBER_OK);
    }
  }
  CHECK(mulciber_discard(c, task, 100000) == MULCIBER_ERROR_SETTING);
  CHECK_THAT(session.context.message(), ContainsSubstring("was never recorded"));
  CHECK(mulciber_discard(c, nullptr, 1) == MULCIBER_ERROR_SETTING);
  CHECK(mulciber_completed(c, task, 100000) == MULCIBER_ERROR_SETTING);
  CHECK_THAT(session.context.message(), ContainsSubstring("was never recorded"));
  const char* text = nullptr;
  REQUIRE(mulciber_text(c, task, &text) == MULCIBER_OK);
  Translator same(adopt_device(session.application.lent()), bundled_model());
  CHECK(text == same.translate(kDroppedText).text);
  mulciber_destroy_task(task);
  mulciber_destroy_translator(translator);
}
