// The C interface: its results are those of C++, no exception escapes it, and it takes structures
// of other versions.
#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "runtime/device.h"
#include "tests/c_session.h"
#include "tests/catch.h"
#include "tests/model_error.h"
#include "tests/small_decoder.h"
#include "tests/support.h"
#include "tests/vulkan_application.h"

#include "mulciber/mulciber_c.h"

using namespace mulciber;
using namespace mulciber::tests;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("The library says its version and which functions it has") {
  CHECK(std::string(mulciber_version()) == MULCIBER_VERSION);
  CHECK(std::string(MULCIBER_VERSION) == fmt::format("{}.{}.{}", MULCIBER_VERSION_MAJOR,
                                                     MULCIBER_VERSION_MINOR,
                                                     MULCIBER_VERSION_PATCH));
  static_assert(MULCIBER_VERSION_AT_LEAST(0, 1, 9));
  static_assert(!MULCIBER_VERSION_AT_LEAST(MULCIBER_VERSION_MAJOR + 1, 0, 0));
  CHECK(mulciber_supports("mulciber_supports"));
  CHECK(mulciber_supports("mulciber_adopt_device"));  // the first and the last of the list
  CHECK(mulciber_supports("mulciber_warm_translator"));
  CHECK_FALSE(mulciber_supports("mulciber_warm_translators"));
  CHECK_FALSE(mulciber_supports(""));
  CHECK_FALSE(mulciber_supports(nullptr));
}

TEST_CASE("Structures of older and newer programs are read and filled by their size") {
  const Session session(small_decoder().string());
  MulciberContext* c = session.c;
  // A newer program's structure ends with fields that this library does not know.
  struct Newer {
    MulciberDeviceReport known;
    uint64_t more;
  } newer = {{sizeof(newer)}, 7};
  REQUIRE(mulciber_describe_device(c, session.device, &newer.known) == MULCIBER_OK);
  CHECK(newer.known.size == sizeof(newer));
  CHECK(newer.known.memory_bytes > 0);
  CHECK(newer.more == 7);
  // An older program's ends before some that it does.
  MulciberDeviceReport older = {offsetof(MulciberDeviceReport, memory_bytes)};
  older.memory_bytes = 7;
  REQUIRE(mulciber_describe_device(c, session.device, &older) == MULCIBER_OK);
  CHECK(std::string(older.name) == newer.known.name);
  CHECK(older.memory_bytes == 7);
  MulciberDeviceReport none = {0};
  CHECK(mulciber_describe_device(c, session.device, &none) == MULCIBER_ERROR_SETTING);
  CHECK_THAT(session.context.message(), ContainsSubstring("set size to sizeof"));
}

TEST_CASE("Translations and answers in C are those in C++") {
  VulkanApplication application;
  const Lent lent(application);
  const Context context;
  MulciberContext* c = context.handle;
  MulciberDevice* device = nullptr;
  REQUIRE(mulciber_adopt_device(c, &lent.info, &device) == MULCIBER_OK);
  const auto finish = [&](MulciberTask* task) {
    while (!mulciber_is_done(task)) {
      MulciberStep step = {sizeof(step)};
      REQUIRE(mulciber_step(c, task, 2000, nullptr, &step) == MULCIBER_OK);
      REQUIRE(mulciber_wait(c, task) == MULCIBER_OK);
    }
    const char* text = nullptr;
    REQUIRE(mulciber_text(c, task, &text) == MULCIBER_OK);
    const std::string copy = text;
    mulciber_destroy_task(task);
    return copy;
  };
  const auto adopted = adopt_device(application.lent());

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
  MulciberOpenDeviceInfo open = {sizeof(open)};
  open.device = "no device of that name";
  CHECK(mulciber_create_device(c, &open, &device) == MULCIBER_ERROR_UNAVAILABLE);
  CHECK(mulciber_is_done(nullptr));
  mulciber_cancel(nullptr);
  mulciber_destroy_task(nullptr);

  // A structure from an older header is shorter: members that it lacks count as 0.
  VulkanApplication application;
  const Lent lent(application);
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
  load.progress = [](void*, uint64_t, uint64_t) { throw std::runtime_error("of the application"); };
  CHECK(mulciber_load_translator(c, device, model, &load, &translator) ==
        MULCIBER_ERROR_APPLICATION);
  CHECK(context.message() == "of the application");
  mulciber_destroy_model(model);
  mulciber_destroy_device(device);
}
