// Models that are loaded step by step, and pipelines that are compiled before they are needed.
#include <optional>
#include <string>
#include <thread>

#include "runtime/device.h"
#include "tests/application_destination.h"
#include "tests/catch.h"
#include "tests/small_decoder.h"
#include "tests/small_whisper.h"
#include "tests/support.h"
#include "tests/vulkan_application.h"

#include "mulciber/batch_generator.h"
#include "mulciber/embedding.h"
#include "mulciber/model_loader.h"
#include "mulciber/mulciber_c.h"

using namespace mulciber;
using namespace mulciber::tests;

namespace {

const std::string kLoaderText = "The old house stands near the river.";
const std::string kLoaderPrompt = "The red hammer and the blue nails";

/// Loads in steps of `bytes` bytes until all is loaded. Returns the number of steps.
size_t load_steps(ModelLoader& loader, uint64_t bytes) {
  size_t steps = 0;
  uint64_t before = 0;
  for (ModelLoader::Progress progress; !progress.complete; ++steps) {
    progress = loader.step(bytes);
    CHECK(progress.done >= before);
    // Progress counts whole weights; a step ends at most one weight that earlier steps began.
    CHECK(progress.total > 0);
    before = progress.done;
  }
  CHECK(loader.progress().done == loader.progress().total);
  return steps;
}

}  // namespace

TEST_CASE("Models that were loaded in slices compute the bits of others, beside other work") {
  VulkanApplication application;
  const auto device = adopt_device(application.lent());
  const GenerateOptions options = {.max_new_tokens = 8, .ignore_end = true};
  Translator whole(device, bundled_model());
  const Translation expected = whole.translate(kLoaderText);
  {
    ModelLoader loader(device, open_model(bundled_model()));
    CHECK_THROWS_AS(loader.translator(), SettingError);
    // Another task runs on the device between steps.
    TranslationTask task(whole, kLoaderText);
    size_t steps = 0;
    uint64_t calls = 0;
    while (!loader.step(100'000).complete) {
      ++steps;
      if (!task.done()) calls += task.step(500).slice.number > 0;
      task.wait();
    }
    CHECK(calls > 3);
    finish(task);
    CHECK(task.result().ids == expected.ids);
    CHECK(steps > loader.progress().total / 100'000 / 2);
    CHECK_THROWS_AS(loader.generator(), ModelError);
    Translator sliced = loader.translator();
    const Translation found = sliced.translate(kLoaderText);
    CHECK(found.ids == expected.ids);
    CHECK(found.score == expected.score);
    CHECK(sliced.statistics().weight_bytes == whole.statistics().weight_bytes);
    CHECK_THROWS_AS(loader.translator(), SettingError);  // already taken
  }
  {
    ModelLoader loader(device, open_model(small_decoder().string()), {.context = 64});
    CHECK(load_steps(loader, 1) > 10);  // one piece per step
    TextGenerator sliced = loader.generator();
    TextGenerator other(device, small_decoder().string(), {.context = 64});
    CHECK(sliced.generate(kLoaderPrompt, options).ids ==
          other.generate(kLoaderPrompt, options).ids);
    CHECK(sliced.context() == 64);
  }
  {
    uint64_t told = 0;
    GeneratorOptions wanted;
    wanted.load.on_progress = [&](uint64_t done, uint64_t) { told = done; };
    ModelLoader loader(device, open_model(small_encoder()), wanted);
    CHECK(load_steps(loader, UINT64_MAX) == 1);
    CHECK(told == loader.progress().total);
    CHECK(loader.text_encoder().embed(kLoaderText).values ==
          TextEncoder(device, small_encoder()).embed(kLoaderText).values);
  }
}

TEST_CASE("Vision models that were loaded in slices compute the bits of others") {
  VulkanApplication application;
  const auto device = adopt_device(application.lent());
  const Image image = read_image((source_dir() / "assets/vit-digits/digit.png").string());
  {
    ModelLoader loader(device, open_model(digits()));
    CHECK(load_steps(loader, 20'000) > 10);
    CHECK_THROWS_AS(loader.transcriber(), ModelError);
    CHECK_THROWS_AS(loader.image_text_matcher(), ModelError);
    ImageEncoder sliced = loader.image_encoder(), whole(device, digits());
    CHECK(sliced.embed(image).values == whole.embed(image).values);
    CHECK(sliced.statistics().weight_bytes == whole.statistics().weight_bytes);
    CHECK_THROWS_AS(loader.image_encoder(), SettingError);  // already taken
  }
  {
    ModelLoader loader(device, open_model(digits()));
    CHECK_THROWS_AS(loader.image_classifier(), SettingError);  // incomplete
    load_steps(loader, UINT64_MAX);
    ImageClassifier sliced = loader.image_classifier(), whole(device, digits());
    CHECK(sliced.classify(image).logits == whole.classify(image).logits);
  }
  {
    const std::string folder = (source_dir() / "assets/digit-strings").string();
    const Image line = read_image(folder + "/string.png");
    ModelLoader loader(device, open_model(folder));
    load_steps(loader, 20'000);
    ImageTextReader sliced = loader.image_text_reader(), whole(device, folder);
    const ImageText found = sliced.read(line);
    CHECK(found.text == "31977");
    CHECK(found.log_probability == whole.read(line).log_probability);
  }
}

TEST_CASE("CLIP-like and speech models that were loaded in slices compute the bits of others") {
  if (fixtures_dir().empty()) MULCIBER_SKIP("no reference models (set MULCIBER_FIXTURES)");
  VulkanApplication application;
  const auto device = adopt_device(application.lent());
  {
    const std::string folder = (fixtures_dir() / "models2/siglip").string();
    ModelLoader loader(device, open_model(folder));
    load_steps(loader, 20'000);
    CHECK_THROWS_AS(loader.image_classifier(), ModelError);
    ImageTextMatcher sliced = loader.image_text_matcher(), whole(device, folder);
    const std::vector<std::string> texts = {"The red hammer strikes the anvil."};
    CHECK(sliced.embed_texts(texts) == whole.embed_texts(texts));
  }
  {
    const std::string folder = (fixtures_dir() / "models/whisper").string();
    ModelLoader loader(device, open_model(folder));
    load_steps(loader, 20'000);
    Transcriber sliced = loader.transcriber(), whole(device, folder);
    const std::vector<float> samples = rising_tone(12000);
    CHECK(sliced.transcribe(samples, one_search()).text ==
          whole.transcribe(samples, one_search()).text);
    CHECK(sliced.sample_rate() == 16000);
  }
}

TEST_CASE("A load that is not wanted any more gives its memory back") {
  VulkanApplication application;
  const auto device = adopt_device(application.lent());
  device->memory().trim();
  const uint64_t reserved = device->memory().reserved();
  {
    ModelLoader loader(device, open_model(bundled_model()));
    CHECK(device->memory().reserved() == reserved);
    loader.step(3'000'000);
    CHECK(device->memory().reserved() > reserved);
    CHECK_FALSE(loader.progress().complete);
  }
  device->memory().trim();
  CHECK(device->memory().reserved() == reserved);
  GeneratorOptions little;
  little.load.memory_limit = 1'000'000;
  CHECK_THROWS_AS(ModelLoader(device, open_model(bundled_model()), little), DeviceError);
  CHECK(device->memory().reserved() == reserved);
  // A limit of exactly what the model takes is enough, both before and after it is loaded.
  GeneratorOptions enough;
  enough.load.memory_limit =
      requirements(application.physical, *open_model(bundled_model())).memory.weight_bytes;
  ModelLoader loader(device, open_model(bundled_model()), enough);
  load_steps(loader, 8 << 20);
  CHECK_NOTHROW(loader.translator());
}

TEST_CASE("Once its pipelines are warm, making and running a task compiles none") {
  VulkanApplication application;
  const auto device = adopt_device(application.lent());
  Translator translator(device, bundled_model());
  TextGenerator generator(device, small_decoder().string(), {.context = 96});
  const TranslateOptions options = {.beams = 4};
  PipelineWarmup translation(translator, options, 32), text(generator);
  CHECK(translation.total() > 5);
  CHECK(translation.left() == translation.total());
  const uint64_t before = pipelines_made(*device);
  CHECK(before == 0);
  for (PipelineWarmup* warmup : {&translation, &text}) {
    while (warmup->left() > 0) {
      const size_t left = warmup->left();
      std::thread beside([&] { warmup->prewarm(3); });
      beside.join();
      CHECK(warmup->left() == left - std::min<size_t>(left, 3));
    }
    CHECK(warmup->prewarm(3) == 0);
  }
  const uint64_t warm = pipelines_made(*device);
  CHECK(warm > 0);
  {
    TranslationTask first(translator, kLoaderText, options),
        second(translator, "He has two dogs.", options);
    finish(first);
    finish(second);
    CHECK(first.result().complete);
  }
  for (const char* prompt : {"The", "The red hammer and the blue nails of the old house stand"}) {
    GenerationTask task(generator, prompt, {.max_new_tokens = 4, .ignore_end = true});
    finish(task);
    CHECK(task.result().ids.size() == 4);
  }
  CHECK(pipelines_made(*device) == warm);
}

TEST_CASE("Once its pipelines are warm, a batch compiles none") {
  VulkanApplication application;
  const auto device = adopt_device(application.lent());
  BatchGenerator batch(device, open_model(small_decoder().string()),
                       {.generator = {.context = 96, .sequences = 4}});
  PipelineWarmup warmup(batch);
  CHECK(warmup.total() > 5);
  while (warmup.prewarm(8) > 0) {
  }
  const uint64_t warm = pipelines_made(*device);
  CHECK(warm > 0);
  int ended = 0;
  for (const char* prompt : {"The", "The red hammer and the blue nails of the old house stand",
                             "A house", "Some other nails"}) {
    batch.submit({.prompt = prompt,
                  .max_new_tokens = 6,
                  .ignore_end = true,
                  .prompt_lookup = 2,
                  .on_end = [&](const Generation&, std::string_view) { ++ended; }});
    batch.step();
  }
  while (batch.step()) {
  }
  CHECK(ended == 4);
  CHECK(pipelines_made(*device) == warm);
}

TEST_CASE("Once their pipelines are warm, tasks of attention and vectors compile none") {
  VulkanApplication application;
  const auto device = adopt_device(application.lent());
  Translator translator(device, bundled_model());
  TextGenerator generator(device, small_decoder().string(), {.context = 96});
  TextEncoder encoder(device, small_encoder());
  const Translation translation = translator.translate(kLoaderText);
  const Generation answer =
      generator.generate(kLoaderPrompt, {.max_new_tokens = 4, .ignore_end = true});
  const uint64_t before = pipelines_made(*device);
  PipelineWarmup maps_of_pairs = PipelineWarmup::of_attention(translator, 32, 40),
                 maps_of_texts = PipelineWarmup::of_attention(generator, 48),
                 vectors(encoder, {}, 24);
  for (PipelineWarmup* warmup : {&maps_of_pairs, &maps_of_texts, &vectors})
    while (warmup->prewarm(4) > 0) {
    }
  const uint64_t warm = pipelines_made(*device);
  CHECK(warm > before);
  {
    AttentionTask maps(translator, translation, {}, {.source = 32, .target = 40});
    finish(maps);
    AttentionTask others(generator, answer, 48);
    finish(others);
  }
  for (const char* text : {"iron", "Why did the smith melt 42 crucibles?"}) {
    EmbeddingTask task(encoder, text);
    finish(task);
    CHECK(task.result().complete);
  }
  CHECK(pipelines_made(*device) == warm);
}

TEST_CASE("Loading in slices and warming in C are those in C++") {
  VulkanApplication application;
  const ApplicationDevice lent = application.lent();
  MulciberContext* c = nullptr;
  REQUIRE(mulciber_create_context(&c) == MULCIBER_OK);
  const MulciberPhysicalDevice physical = {
      sizeof(physical), lent.physical.instance, lent.physical.physical_device,
      lent.physical.get_instance_proc_addr, lent.physical.api_version};
  MulciberDeviceInfo info = {};
  info.size = sizeof(info);
  info.physical = &physical;
  info.device = lent.device;
  info.queue = lent.queue.queue;
  info.queue_family = lent.queue.family;
  MulciberDevice* device = nullptr;
  REQUIRE(mulciber_adopt_device(c, &info, &device) == MULCIBER_OK);
  MulciberModel* model = nullptr;
  REQUIRE(mulciber_open_model(c, bundled_model().c_str(), &model) == MULCIBER_OK);
  MulciberLoader* loader = nullptr;
  REQUIRE(mulciber_begin_load(c, device, model, nullptr, &loader) == MULCIBER_OK);
  mulciber_destroy_model(model);
  MulciberTranslator* translator = nullptr;
  CHECK(mulciber_finish_translator(c, loader, &translator) == MULCIBER_ERROR_SETTING);
  MulciberLoadProgress progress = {sizeof(progress)};
  while (!progress.complete)
    REQUIRE(mulciber_step_load(c, loader, 1 << 20, &progress) == MULCIBER_OK);
  CHECK(progress.done == progress.total);
  MulciberGenerator* generator = nullptr;
  CHECK(mulciber_finish_generator(c, loader, &generator) == MULCIBER_ERROR_MODEL);
  REQUIRE(mulciber_finish_translator(c, loader, &translator) == MULCIBER_OK);
  mulciber_destroy_loader(loader);
  MulciberWarmup* warmup = nullptr;
  REQUIRE(mulciber_warm_translator(c, translator, nullptr, 32, &warmup) == MULCIBER_OK);
  uint32_t left = 1;
  while (left > 0) REQUIRE(mulciber_prewarm(c, warmup, 4, &left) == MULCIBER_OK);
  mulciber_destroy_warmup(warmup);
  const uint64_t made = mulciber_pipelines_made(device);
  CHECK(made > 0);
  MulciberTask* task = nullptr;
  REQUIRE(mulciber_begin_translation(c, translator, kLoaderText.c_str(), nullptr, &task) ==
          MULCIBER_OK);
  while (!mulciber_is_done(task)) {
    MulciberStep step = {sizeof(step)};
    REQUIRE(mulciber_step(c, task, 2000, nullptr, &step) == MULCIBER_OK);
    REQUIRE(mulciber_wait(c, task) == MULCIBER_OK);
  }
  const char* text = nullptr;
  REQUIRE(mulciber_text(c, task, &text) == MULCIBER_OK);
  CHECK_FALSE(std::string(text).empty());
  CHECK(mulciber_pipelines_made(device) == made);
  CHECK(mulciber_step_load(c, nullptr, 1, nullptr) == MULCIBER_ERROR_SETTING);
  mulciber_destroy_task(task);
  mulciber_destroy_translator(translator);
  mulciber_destroy_device(device);
  mulciber_destroy_context(c);
}
