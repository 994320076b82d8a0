// The C interface: its results are those of C++, no exception escapes it, and its layout stays.
#include <algorithm>
#include <fstream>
#include <sstream>

#include "runtime/device.h"
#include "tests/c_session.h"
#include "tests/catch.h"
#include "tests/model_error.h"
#include "tests/small_decoder.h"
#include "tests/support.h"
#include "tests/vulkan_host.h"

#include "mulciber/mulciber_c.h"
#include "mulciber/mulciber_c_images.h"
#include "mulciber/mulciber_c_load.h"
#include "mulciber/mulciber_c_tasks.h"
#include "mulciber/text_encoder.h"

using namespace mulciber;
using namespace mulciber::tests;
using Catch::Matchers::ContainsSubstring;

namespace {}  // namespace

TEST_CASE("Sizes of the C interface's structures are as recorded") {
  // A failure here means that the layout has changed: programs built before would break. Add a new
  // member at the end of a structure that begins with its size; then renew the record with it.
  std::ostringstream layout;
#define MULCIBER_SIZE(type) layout << #type << " " << sizeof(type) << "\n";
  MULCIBER_SIZE(MulciberPhysicalDevice)
  MULCIBER_SIZE(MulciberRequirement)
  MULCIBER_SIZE(MulciberRequirements)
  MULCIBER_SIZE(MulciberMemoryRequest)
  MULCIBER_SIZE(MulciberMemory)
  MULCIBER_SIZE(MulciberDeviceInfo)
  MULCIBER_SIZE(MulciberLoadInfo)
  MULCIBER_SIZE(MulciberTranslateInfo)
  MULCIBER_SIZE(MulciberGenerateInfo)
  MULCIBER_SIZE(MulciberSlice)
  MULCIBER_SIZE(MulciberSemaphores)
  MULCIBER_SIZE(MulciberStep)
  MULCIBER_SIZE(MulciberEmbedInfo)
  MULCIBER_SIZE(MulciberAttentionMap)
  MULCIBER_SIZE(MulciberHostImage)
  MULCIBER_SIZE(MulciberHostBuffer)
  MULCIBER_SIZE(MulciberLoadProgress)
  MULCIBER_SIZE(MulciberFile)
  MULCIBER_SIZE(MulciberDeviceReport)
  MULCIBER_SIZE(MulciberBorders)
  MULCIBER_SIZE(MulciberText)
  MULCIBER_SIZE(MulciberBeam)
  MULCIBER_SIZE(MulciberPromptPart)
  MULCIBER_SIZE(MulciberGenerationOutputs)
  MULCIBER_SIZE(MulciberImage)
  MULCIBER_SIZE(MulciberImageInfo)
  MULCIBER_SIZE(MulciberImageReport)
  MULCIBER_SIZE(MulciberPatchMap)
  MULCIBER_SIZE(MulciberAdapter)
#undef MULCIBER_SIZE
  if (sizeof(void*) != 8) MULCIBER_SKIP("the record is of 64-bit processors");
  std::ifstream recorded(source_dir() / "tests/data/c_interface_sizes.txt");
  std::stringstream text;
  text << recorded.rdbuf();
  CHECK(layout.str() == text.str());
}

TEST_CASE("Requirements in C are those in C++") {
  VulkanHost host;
  const Lent lent(host);
  const Context context;
  MulciberRequirements found = {sizeof(found)};
  REQUIRE(mulciber_requirements(context.handle, &lent.physical, nullptr, &found) == MULCIBER_OK);
  CHECK(found.fits);
  CHECK(found.queue_family == host.asked.queue_family);
  REQUIRE(found.requirement_count == host.asked.list.size());
  for (uint32_t i = 0; i < found.requirement_count; ++i) {
    CHECK(found.requirements[i].name == host.asked.list[i].name);
    CHECK((found.requirements[i].available != 0) == host.asked.list[i].available);
  }
  CHECK(found.extension_count == host.asked.extensions.size());
}

TEST_CASE("Translations and answers in C are those in C++") {
  VulkanHost host;
  const Lent lent(host);
  const Context context;
  MulciberContext* c = context.handle;
  MulciberDevice* device = nullptr;
  REQUIRE(mulciber_adopt_device(c, &lent.info, &device) == MULCIBER_OK);
  const auto finish = [&](MulciberTask* task) {
    while (!mulciber_is_done(task)) {
      MulciberStep step;
      REQUIRE(mulciber_step(c, task, 2000, nullptr, &step) == MULCIBER_OK);
      REQUIRE(mulciber_wait(c, task) == MULCIBER_OK);
    }
    const char* text = nullptr;
    REQUIRE(mulciber_text(c, task, &text) == MULCIBER_OK);
    const std::string copy = text;
    mulciber_destroy_task(task);
    return copy;
  };
  const auto adopted = adopt_device(host.lent());

  MulciberModel* model = nullptr;
  MulciberTranslator* translator = nullptr;
  MulciberTask* task = nullptr;
  REQUIRE(mulciber_open_model(c, bundled_model().c_str(), &model) == MULCIBER_OK);
  REQUIRE(mulciber_load_translator(c, device, model, nullptr, &translator) == MULCIBER_OK);
  mulciber_destroy_model(model);
  const char* text = "The old house stands near the river.";
  const MulciberTranslateInfo beams = {sizeof(beams), 3, 0};
  REQUIRE(mulciber_begin_translation(c, translator, text, &beams, &task) == MULCIBER_OK);
  CHECK(finish(task) == Translator(adopted, bundled_model()).translate(text, {.beams = 3}).text);
  mulciber_destroy_translator(translator);

  MulciberGenerator* generator = nullptr;
  MulciberLoadInfo load = {sizeof(load)};
  load.context = 64;
  REQUIRE(mulciber_open_model(c, small_decoder().c_str(), &model) == MULCIBER_OK);
  REQUIRE(mulciber_load_generator(c, device, model, &load, &generator) == MULCIBER_OK);
  mulciber_destroy_model(model);
  std::string streamed;
  MulciberGenerateInfo generate = {sizeof(generate)};
  generate.max_new_tokens = 9;
  generate.ignore_end = VK_TRUE;
  generate.user = &streamed;
  generate.on_text = [](void* user, const char* piece, size_t bytes) {
    static_cast<std::string*>(user)->append(piece, bytes);
  };
  REQUIRE(mulciber_begin_generation(c, generator, "The red hammer", &generate, &task) ==
          MULCIBER_OK);
  const std::string answer = finish(task);
  CHECK(answer == streamed);
  CHECK(answer == TextGenerator(adopted, small_decoder().string(), {.context = 64})
                      .generate("The red hammer", {.max_new_tokens = 9, .ignore_end = true})
                      .text);
  size_t taken = 0;
  REQUIRE(mulciber_take_snapshot(c, generator, &taken, nullptr) == MULCIBER_OK);
  std::vector<std::byte> snapshot(taken);
  size_t little = taken - 1;
  CHECK(mulciber_take_snapshot(c, generator, &little, snapshot.data()) == MULCIBER_ERROR_SETTING);
  REQUIRE(mulciber_take_snapshot(c, generator, &taken, snapshot.data()) == MULCIBER_OK);
  CHECK(mulciber_restore_snapshot(c, generator, snapshot.data(), taken) == MULCIBER_OK);
  MulciberGenerator* conversation = nullptr;
  REQUIRE(mulciber_new_conversation(c, generator, 32, &conversation) == MULCIBER_OK);
  CHECK(mulciber_restore_snapshot(c, conversation, snapshot.data(), taken) == MULCIBER_OK);
  mulciber_destroy_generator(conversation);
  CHECK(mulciber_new_conversation(c, generator, 65, &conversation) == MULCIBER_ERROR_SETTING);
  CHECK(conversation == nullptr);
  CHECK(mulciber_restore_snapshot(c, generator, snapshot.data(), 9) == MULCIBER_ERROR_MODEL);
  mulciber_destroy_generator(generator);

  size_t size = 0;
  REQUIRE(mulciber_pipeline_cache(c, device, &size, nullptr) == MULCIBER_OK);
  std::vector<std::byte> cache(size);
  CHECK(mulciber_pipeline_cache(c, device, &size, cache.data()) == MULCIBER_OK);
  CHECK(size == cache.size());
  mulciber_destroy_device(device);
}

TEST_CASE("A model's files come from memory or from functions in C") {
  const Session session(bundled_model());
  MulciberContext* c = session.c;
  std::vector<std::string> names, contents;
  for (const char* name : {"config.json", "generation_config.json", "model.safetensors",
                           "source.spm", "target.spm", "tokenizer_config.json", "vocab.json"}) {
    names.emplace_back(name);
    contents.push_back(read_file(std::filesystem::path(bundled_model()) / name));
  }
  const auto translated = [&](MulciberModel* model) {
    MulciberTranslator* translator = nullptr;
    MulciberTask* task = nullptr;
    REQUIRE(mulciber_load_translator(c, session.device, model, nullptr, &translator) ==
            MULCIBER_OK);
    REQUIRE(mulciber_begin_translation(c, translator, "Two dogs run.", nullptr, &task) ==
            MULCIBER_OK);
    session.finish(task);
    const char* text = nullptr;
    REQUIRE(mulciber_text(c, task, &text) == MULCIBER_OK);
    const std::string copy = text;
    mulciber_destroy_task(task);
    mulciber_destroy_translator(translator);
    return copy;
  };
  const std::string expected = translated(session.model);
  std::vector<MulciberFile> files;
  for (size_t i = 0; i < names.size(); ++i) {
    MulciberFile file = {sizeof(file)};
    file.name = names[i].c_str();
    file.byte_count = contents[i].size();
    file.bytes = contents[i].data();
    if (i % 2 == 0) {
      file.bytes = nullptr;
      file.user = &contents[i];
      file.read = [](void* user, uint64_t offset, void* into, size_t bytes) {
        return static_cast<std::string*>(user)->copy(static_cast<char*>(into), bytes, offset);
      };
    }
    files.push_back(file);
  }
  const auto count = static_cast<uint32_t>(files.size());
  MulciberModel* model = nullptr;
  REQUIRE(mulciber_open_model_files(c, "pack", count, files.data(), &model) == MULCIBER_OK);
  CHECK(translated(model) == expected);
  mulciber_destroy_model(model);

  files[2].byte_count += 100;  // more bytes than the function gives
  CHECK(mulciber_open_model_files(c, "pack", count, files.data(), &model) == MULCIBER_ERROR_MODEL);
  CHECK(model == nullptr);
  CHECK_THAT(session.context.message(), ContainsSubstring("model.safetensors"));
  files[1].bytes = nullptr;
  CHECK(mulciber_open_model_files(c, "pack", count, files.data(), &model) ==
        MULCIBER_ERROR_SETTING);
  CHECK(mulciber_open_model_files(c, nullptr, 0, nullptr, &model) == MULCIBER_ERROR_MODEL);
  CHECK(mulciber_open_model_files(c, "pack", 1, nullptr, &model) == MULCIBER_ERROR_SETTING);
}

TEST_CASE("Vectors of texts in C are those in C++") {
  const std::string folder = (source_dir() / "tests/data/roberta_cls").string();
  const Session session(folder);
  MulciberContext* c = session.c;
  MulciberTextEncoder* encoder = nullptr;
  REQUIRE(mulciber_load_text_encoder(c, session.device, session.model, nullptr, &encoder) ==
          MULCIBER_OK);
  const uint32_t width = mulciber_vector_width(encoder);
  const char* texts[] = {"A red house.", "Two dogs run.", ""};
  std::vector<float> vectors(3 * width);
  MulciberEmbedInfo info = {sizeof(info)};
  info.prompt = "say: ";
  REQUIRE(mulciber_embed(c, encoder, 3, texts, &info, vectors.data()) == MULCIBER_OK);
  TextEncoder same(adopt_device(session.host.lent()), folder);
  const std::vector<std::string> copies(std::begin(texts), std::end(texts));
  std::vector<float> expected;
  for (const TextVector& vector : same.embed(copies, {.prompt = "say: "}))
    expected.insert(expected.end(), vector.values.begin(), vector.values.end());
  CHECK(vectors == expected);
  CHECK(mulciber_embed(c, encoder, 3, texts, nullptr, vectors.data()) == MULCIBER_OK);
  CHECK(vectors != expected);

  texts[1] = nullptr;
  CHECK(mulciber_embed(c, encoder, 3, texts, nullptr, vectors.data()) == MULCIBER_ERROR_SETTING);
  std::string endless;
  for (int i = 0; i < 2000; ++i) endless += "word ";
  texts[1] = endless.c_str();
  CHECK(mulciber_embed(c, encoder, 3, texts, nullptr, vectors.data()) == MULCIBER_OK);
  info.refuse_long = VK_TRUE;
  CHECK(mulciber_embed(c, encoder, 3, texts, &info, vectors.data()) == MULCIBER_ERROR_MODEL);
  CHECK_THAT(session.context.message(), ContainsSubstring("text 2 of 3"));
  mulciber_destroy_text_encoder(encoder);
}

TEST_CASE("Attention maps in C go into a buffer of the host's as C++ gives them") {
  const Session session(bundled_model());
  MulciberContext* c = session.c;
  MulciberTranslator* translator = nullptr;
  MulciberTask *translation = nullptr, *attention = nullptr;
  REQUIRE(mulciber_load_translator(c, session.device, session.model, nullptr, &translator) ==
          MULCIBER_OK);
  const char* text = "The old house stands near the river.";
  REQUIRE(mulciber_begin_translation(c, translator, text, nullptr, &translation) == MULCIBER_OK);
  CHECK(mulciber_begin_attention(c, translator, translation, &attention) ==
        MULCIBER_ERROR_SETTING);  // the task is not done
  session.finish(translation);
  REQUIRE(mulciber_begin_attention(c, translator, translation, &attention) == MULCIBER_OK);
  CHECK_FALSE(mulciber_is_recorded(translation));
  mulciber_destroy_task(translation);
  CHECK_FALSE(mulciber_is_recorded(attention));
  session.finish(attention);
  CHECK(mulciber_is_recorded(attention));
  VkExtent2D extent;
  REQUIRE(mulciber_attention_extent(c, attention, MULCIBER_ATTENTION_CROSS, &extent) ==
          MULCIBER_OK);

  const auto adopted = adopt_device(session.host.lent());
  Translator same(adopted, bundled_model());
  const AttentionMaps maps = *same.translate(text, {.attention = true}).attention;
  const size_t count = size_t{extent.width} * extent.height;
  REQUIRE(count == size_t{maps.source_length} * maps.target_length);
  const Buffer memory = adopted->memory().allocate(count * 4, MemoryUsage::kReadback);
  MulciberHostBuffer buffer = {sizeof(buffer)};
  buffer.buffer = memory.view().buffer;
  buffer.offset = memory.view().offset;
  buffer.bytes = count * 4;
  buffer.stages = VK_PIPELINE_STAGE_HOST_BIT;
  buffer.accesses = VK_ACCESS_HOST_READ_BIT;
  MulciberAttentionMap map = {sizeof(map), MULCIBER_ATTENTION_CROSS, 1, 2};
  HostCommands commands(session.host);
  commands.run([&](VkCommandBuffer recorded) {
    CHECK(mulciber_record_attention_buffer(c, attention, recorded, &buffer, &map) == MULCIBER_OK);
    map.layer = 99;
    CHECK(mulciber_record_attention_buffer(c, attention, recorded, &buffer, &map) ==
          MULCIBER_ERROR_SETTING);
    MulciberHostImage image = {sizeof(image)};
    image.format = VK_FORMAT_R8G8B8A8_UNORM;
    map.layer = 1;
    CHECK(mulciber_record_attention_image(c, attention, recorded, &image, &map) ==
          MULCIBER_ERROR_SETTING);
  });
  const auto* found = reinterpret_cast<const float*>(memory.view().mapped);
  const size_t first = (size_t{1} * maps.cross_heads + 2) * count;
  CHECK(std::equal(found, found + count, maps.cross.begin() + static_cast<ptrdiff_t>(first)));
  const char* words = nullptr;
  CHECK(mulciber_text(c, attention, &words) == MULCIBER_ERROR_SETTING);
  mulciber_destroy_task(attention);
  mulciber_destroy_translator(translator);
}

TEST_CASE("What cannot be done in C is a status and a message") {
  const Context context;
  MulciberContext* c = context.handle;
  MulciberModel* model = nullptr;
  CHECK(mulciber_open_model(c, "/no/such/folder", &model) == MULCIBER_ERROR_MODEL);
  CHECK(model == nullptr);
  CHECK_THAT(context.message(), ContainsSubstring("/no/such/folder"));
  CHECK(mulciber_open_model(c, nullptr, &model) == MULCIBER_ERROR_SETTING);
  CHECK_THAT(context.message(), ContainsSubstring("path: is NULL"));
  CHECK(mulciber_open_model(nullptr, "x", &model) == MULCIBER_ERROR_SETTING);
  MulciberDevice* device = nullptr;
  MulciberDeviceInfo info = {};
  CHECK(mulciber_adopt_device(c, &info, &device) == MULCIBER_ERROR_SETTING);
  CHECK_THAT(context.message(), ContainsSubstring("size"));
  const MulciberPhysicalDevice nothing = {sizeof(nothing)};
  info.size = sizeof(info);
  info.physical = &nothing;
  CHECK(mulciber_adopt_device(c, &info, &device) == MULCIBER_ERROR_UNAVAILABLE);
  CHECK(mulciber_open_device(c, "no device of that name", &device) == MULCIBER_ERROR_UNAVAILABLE);
  CHECK(mulciber_is_done(nullptr));
  mulciber_cancel(nullptr);
  mulciber_destroy_task(nullptr);

  // A structure from an older header is shorter: members that it lacks count as 0.
  VulkanHost host;
  const Lent lent(host);
  info = lent.info;
  info.size = offsetof(MulciberDeviceInfo, lock_queue);
  info.lock_queue = [](void*) { std::abort(); };
  REQUIRE(mulciber_adopt_device(c, &info, &device) == MULCIBER_OK);
  REQUIRE(mulciber_open_model(c, bundled_model().c_str(), &model) == MULCIBER_OK);
  MulciberTranslator* translator = nullptr;
  MulciberLoadInfo load = {sizeof(load)};
  load.memory_limit = 1000;
  CHECK(mulciber_load_translator(c, device, model, &load, &translator) ==
        MULCIBER_ERROR_OUT_OF_MEMORY);
  CHECK(translator == nullptr);
  // An exception that a callback throws does not escape either.
  load.memory_limit = 0;
  load.progress = [](void*, uint64_t, uint64_t) { throw std::runtime_error("of the host"); };
  CHECK(mulciber_load_translator(c, device, model, &load, &translator) == MULCIBER_ERROR_HOST);
  CHECK(context.message() == "of the host");
  mulciber_destroy_model(model);
  mulciber_destroy_device(device);
}
