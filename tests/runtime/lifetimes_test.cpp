// Lifetimes: memory that an application takes back from a loaded model, and owners that are
// destroyed first.
#include "mulciber/attention.h"
#include "mulciber/embedding.h"
#include "mulciber/graph_attention.h"
#include "mulciber/image_task.h"
#include "mulciber/image_text_reader.h"
#include "runtime/device.h"
#include "tests/catch.h"
#include "tests/small_decoder.h"
#include "tests/small_whisper.h"
#include "tests/support.h"
#include "tests/vulkan_application.h"

using namespace mulciber;
using namespace mulciber::tests;

namespace {

/// Checks that what `compute` allocates is gone once the object is trimmed, and that it computes
/// the same again.
template <typename Object, typename Compute>
void check_trimmed(Device& device, Object& object, const Compute& compute) {
  const uint64_t before = device.memory().used();
  const auto found = compute();
  CHECK(device.memory().used() > before);
  const uint64_t reserved = device.memory().reserved();
  const uint64_t freed = object.trim();
  CHECK(device.memory().reserved() == reserved - freed);
  CHECK(device.memory().used() == before);
  CHECK(compute() == found);
}

}  // namespace

TEST_CASE("A trimmed translator holds what it held when it was loaded, and goes on") {
  VulkanApplication application;
  const auto device = adopt_device(application.lent());
  Translator translator(device, (source_dir() / "assets/en-de").string());
  const uint64_t loaded = device->memory().used();
  const std::string text = "The old house stands near the river.";
  const Translation whole = translator.translate(text, {.beams = 8, .attention = true});
  CHECK(device->memory().used() > loaded);
  const uint64_t reserved = device->memory().reserved();
  const uint64_t freed = translator.trim();
  CHECK(freed > 0);
  CHECK(device->memory().reserved() == reserved - freed);
  CHECK(device->memory().used() == loaded);

  // Memory that running tasks use stays.
  TranslationTask search(translator, text, {.beams = 8});
  AttentionTask maps(translator, whole);
  search.step(500);
  maps.step(500);
  translator.trim();
  CHECK(device->memory().used() > loaded);
  for (FrameTask* task : {static_cast<FrameTask*>(&search), static_cast<FrameTask*>(&maps)}) {
    while (!task->done()) {
      task->step(5000);
      task->wait();
    }
  }
  CHECK(search.result().text == whole.text);
  CHECK(search.result().score == whole.score);
  CHECK(translator.translate(text, {.beams = 8, .attention = true}).attention->cross ==
        whole.attention->cross);
}

TEST_CASE("A trimmed image encoder holds what it held when it was loaded, and its tasks go on") {
  VulkanApplication application;
  const auto device = adopt_device(application.lent());
  ImageEncoder encoder(device, digits());
  const uint64_t loaded = device->memory().used();
  const Image image = {9, 7, std::vector<uint8_t>(size_t{9} * 7 * 3, 90)};
  const ImageVector whole = encoder.embed(image);
  CHECK(device->memory().used() > loaded);
  const uint64_t reserved = device->memory().reserved();
  const uint64_t freed = encoder.trim();
  CHECK(freed > 0);
  CHECK(device->memory().reserved() == reserved - freed);
  CHECK(device->memory().used() == loaded);

  // A running task keeps what it reads.
  ImageTask task(encoder, image);
  task.step(1);
  encoder.trim();
  CHECK(device->memory().used() > loaded);
  while (!task.done()) {
    task.step(5000);
    task.wait();
  }
  CHECK(task.result().values == whole.values);
  CHECK(encoder.embed(image).values == whole.values);
}

TEST_CASE("Trimmed readers and attentions hold what they held, and compute the same") {
  VulkanApplication application;
  const auto device = adopt_device(application.lent());
  ImageTextReader reader(device, (source_dir() / "assets/digit-strings").string());
  const Image image = read_image((source_dir() / "assets/digit-strings/string.png").string());
  check_trimmed(*device, reader,
                [&] { return reader.read(image, {.beams = 2, .attention = true}).maps; });

  const FloatArray x = {{1, 3, 4}, {1, 0, 0, 2, 0, 1, 0, 1, 2, 0, 1, 0}};
  Attention attention(device,
                      {.heads = 2, .query = Projection{{{4, 4}, std::vector<float>(16, 0.5f)}}});
  check_trimmed(*device, attention,
                [&] { return attention({.queries = x, .keys = x, .values = x}).output.values; });
  const FloatArray nodes = {{3, 2}, {1, 0, 0, 2, 1, 1}};
  GraphAttentionLayer layer(
      device,
      {.query = {{{2, 2}, {1, 0, 0, 1}}}, .key = {{{2, 2}, {0, 1, 1, 0}}}, .score_vector = {1, 1}},
      make_graph(3, {{0, 1}, {1, 2}, {2, 0}}));
  check_trimmed(*device, layer, [&] { return layer(nodes).output.values; });
}

TEST_CASE("A trimmed transcriber holds what it held, and hears the same") {
  if (whisper_folder().empty()) MULCIBER_SKIP("no reference models (set MULCIBER_FIXTURES)");
  VulkanApplication application;
  const auto device = adopt_device(application.lent());
  Transcriber transcriber(device, whisper_folder().string());
  TranscribeOptions options = one_search(2);
  options.word_times = true;
  check_trimmed(*device, transcriber,
                [&] { return transcriber.transcribe(rising_tone(20000), options).text; });
}

TEST_CASE("Tasks go on when their model and device were let go of") {
  VulkanApplication application;
  auto device = adopt_device(application.lent());
  const std::string text = "The old house stands near the river.", prompt = "The red hammer";
  const GenerateOptions options = {.max_new_tokens = 6, .ignore_end = true};
  auto translator = std::make_unique<Translator>(device, (source_dir() / "assets/en-de").string());
  auto generator = std::make_unique<TextGenerator>(device, small_decoder().string(),
                                                   GeneratorOptions{.context = 64});
  const Translation whole = translator->translate(text);
  const Generation answer =
      TextGenerator(device, small_decoder().string(), {.context = 64}).generate(prompt, options);
  const std::weak_ptr<Device> watched = device;
  {
    TranslationTask translation(*translator, text);
    AttentionTask attention(*translator, whole);
    GenerationTask generation(*generator, prompt, options);
    TranslationTask never_ended(*translator, text);
    translation.step(300);
    never_ended.step(300);
    translator.reset();
    generator.reset();
    device.reset();
    for (FrameTask* task :
         {static_cast<FrameTask*>(&translation), static_cast<FrameTask*>(&attention),
          static_cast<FrameTask*>(&generation)}) {
      while (!task->done()) {
        task->step(5000);
        task->wait();
      }
    }
    CHECK(translation.result().text == whole.text);
    CHECK(generation.result().ids == answer.ids);
    CHECK_FALSE(watched.expired());
  }
  CHECK(watched.expired());
}

TEST_CASE("Slices that run when their task and model are gone have what they use") {
  VulkanApplication application;
  ApplicationDevice lent = application.lent();
  int given = 0;
  lent.allocator.allocate = [&](const MemoryRequest& request, ApplicationMemory* memory) {
    const VkResult result = allocate_lent(application, request, memory);
    if (result == VK_SUCCESS) ++given;
    return result;
  };
  lent.allocator.free = [&](const ApplicationMemory& memory) {
    --given;
    application.vk.vkFreeMemory(application.device, memory.memory, nullptr);
  };
  auto device = adopt_device(lent);
  const std::weak_ptr<Device> watched = device;
  const std::string text = "The old house stands near the river.", prompt = "The red hammer";
  uint64_t kept = 0;
  {
    auto translator = std::make_unique<Translator>(device, bundled_model());
    auto generator = std::make_unique<TextGenerator>(device, small_decoder().string(),
                                                     GeneratorOptions{.context = 64});
    auto encoder = std::make_unique<TextEncoder>(device, small_encoder());
    const Translation whole = translator->translate(text);
    std::vector<std::unique_ptr<FrameTask>> tasks;
    tasks.push_back(std::make_unique<TranslationTask>(*translator, text));
    tasks.push_back(std::make_unique<AttentionTask>(*translator, whole));
    tasks.push_back(std::make_unique<GenerationTask>(*generator, prompt));
    tasks.push_back(std::make_unique<EmbeddingTask>(*encoder, text));
    ApplicationCommands commands(application);
    commands.run([&](VkCommandBuffer buffer) {
      for (const auto& task : tasks) REQUIRE(task->record(buffer, 5000).number == 1);
      const uint64_t before = device->memory().used();
      tasks.clear();
      CHECK_THROWS_AS(generator->generate(prompt), SettingError);  // the slice uses its context
      translator.reset();
      generator.reset();
      encoder.reset();
      // The buffers of AttentionTask's copies are not among what slices use.
      CHECK(device->memory().used() > before / 2);
    });
    // A task whose slices have ended, and one whose slices were discarded, leave nothing.
    kept = device->memory().used();
    translator = std::make_unique<Translator>(device, bundled_model());
    TranslationTask ended(*translator, text), dropped(*translator, text);
    FrameSlice slice;
    commands.run([&](VkCommandBuffer buffer) { slice = ended.record(buffer, 5000); });
    ended.completed(slice.number);
    commands.drop([&](VkCommandBuffer buffer) { slice = dropped.record(buffer, 5000); });
    dropped.discard(slice.number);
    translator.reset();
    CHECK(device->memory().used() > kept);
  }
  CHECK(device->memory().used() == kept);
  CHECK(given > 0);
  CHECK_FALSE(watched.expired());
  device.reset();
  CHECK(watched.expired());
  CHECK(given == 0);
}
