// Tasks in C: waiting with a timeout, and running without Vulkan's types.
#include <cstdint>
#include <string>

#include "runtime/device.h"
#include "tests/c_session.h"
#include "tests/catch.h"
#include "tests/held_fences.h"
#include "tests/small_decoder.h"
#include "tests/support.h"

#include "mulciber/embedding.h"
#include "mulciber/mulciber_c.h"

using namespace mulciber;
using namespace mulciber::tests;
using Catch::Matchers::ContainsSubstring;

namespace {

const char* const kRunText = "The old house stands near the river.";

}  // namespace

TEST_CASE("Waiting with a timeout in C says whether a task's slices have ended") {
  const VulkanApplication application;
  HeldFences fences(application);
  const Context context;
  MulciberContext* c = context.handle;
  Lent lent(application);
  lent.info.submit = [](void* user, VkQueue queue, const VkSubmitInfo* info, VkFence fence) {
    return static_cast<HeldFences*>(user)->submit(queue, *info, fence);
  };
  lent.info.user = &fences;
  MulciberDevice* device = nullptr;
  MulciberModel* model = nullptr;
  MulciberTranslator* translator = nullptr;
  MulciberTask* task = nullptr;
  REQUIRE(mulciber_adopt_device(c, &lent.info, &device) == MULCIBER_OK);
  REQUIRE(mulciber_open_model(c, bundled_model().c_str(), &model) == MULCIBER_OK);
  REQUIRE(mulciber_load_translator(c, device, model, nullptr, &translator) == MULCIBER_OK);
  REQUIRE(mulciber_begin_translation(c, translator, kRunText, nullptr, &task) == MULCIBER_OK);
  MulciberBool ended = 0;
  CHECK(mulciber_wait_for(c, task, 0, &ended) == MULCIBER_OK);
  CHECK(ended);  // nothing was submitted
  fences.hold();
  MulciberStep step = {sizeof(step)};
  CHECK(mulciber_step(c, task, 1000, nullptr, &step) == MULCIBER_OK);
  CHECK(step.number == 1);
  for (const uint64_t timeout : {0, 1000}) {
    ended = 1;
    CHECK(mulciber_wait_for(c, task, timeout, &ended) == MULCIBER_OK);
    CHECK_FALSE(ended);
  }
  fences.release();
  CHECK(mulciber_wait_for(c, task, UINT64_MAX, &ended) == MULCIBER_OK);
  CHECK(ended);
  CHECK(mulciber_wait_for(c, task, 0, nullptr) == MULCIBER_ERROR_SETTING);
  CHECK_THAT(context.message(), ContainsSubstring("ended: is NULL"));
  CHECK(mulciber_wait_for(c, nullptr, 0, &ended) == MULCIBER_ERROR_SETTING);
  CHECK_THAT(context.message(), ContainsSubstring("task: is NULL"));
  CHECK_FALSE(ended);
  mulciber_destroy_task(task);
  mulciber_destroy_translator(translator);
  mulciber_destroy_model(model);
  mulciber_destroy_device(device);
}

TEST_CASE("A task that mulciber_run() runs to its end gives what C++ gives") {
  const Session session(small_decoder().string());
  MulciberContext* c = session.c;
  MulciberGenerator* generator = nullptr;
  MulciberTask* task = nullptr;
  MulciberLoadInfo load = {sizeof(load)};
  load.context = 64;
  REQUIRE(mulciber_load_generator(c, session.device, session.model, &load, &generator) ==
          MULCIBER_OK);
  MulciberGenerateInfo info = {sizeof(info)};
  info.max_new_tokens = 6;
  info.ignore_end = 1;
  REQUIRE(mulciber_begin_generation(c, generator, "The red hammer", &info, &task) == MULCIBER_OK);
  // Within a budget of 0 runs one dispatch at a time.
  MulciberBool done = 1;
  REQUIRE(mulciber_run(c, task, 0, &done) == MULCIBER_OK);
  CHECK_FALSE(done);
  CHECK(mulciber_steps(task) == 0);
  uint32_t runs = 0;
  for (; !done; ++runs) REQUIRE(mulciber_run(c, task, 5000, &done) == MULCIBER_OK);
  CHECK(runs > 0);
  CHECK(mulciber_is_done(task));
  const char* text = nullptr;
  REQUIRE(mulciber_text(c, task, &text) == MULCIBER_OK);
  CHECK(text == TextGenerator(adopt_device(session.application.lent()), small_decoder().string(),
                              {.context = 64})
                    .generate("The red hammer", {.max_new_tokens = 6, .ignore_end = true})
                    .text);
  done = 0;
  CHECK(mulciber_run(c, task, 5000, &done) == MULCIBER_OK);  // nothing is left to do
  CHECK(done);
  CHECK(mulciber_run(c, task, 5000, nullptr) == MULCIBER_ERROR_SETTING);
  CHECK_THAT(session.context.message(), ContainsSubstring("done: is NULL"));
  CHECK(mulciber_run(c, nullptr, 5000, &done) == MULCIBER_ERROR_SETTING);
  CHECK_THAT(session.context.message(), ContainsSubstring("task: is NULL"));
  CHECK_FALSE(done);
  mulciber_destroy_task(task);

  // Slices of mulciber_record() that have not ended are in its way.
  REQUIRE(mulciber_begin_generation(c, generator, "The red hammer", &info, &task) == MULCIBER_OK);
  ApplicationCommands commands(session.application);
  MulciberSlice slice = {sizeof(slice)};
  commands.drop([&](VkCommandBuffer buffer) {
    REQUIRE(mulciber_record(c, task, buffer, 1000, &slice) == MULCIBER_OK);
  });
  CHECK(mulciber_run(c, task, 5000, &done) == MULCIBER_ERROR_SETTING);
  CHECK_THAT(session.context.message(), ContainsSubstring("slices of record()"));
  REQUIRE(mulciber_discard(c, task, slice.number) == MULCIBER_OK);
  REQUIRE(mulciber_run(c, task, 5000, &done) == MULCIBER_OK);
  mulciber_destroy_task(task);
  mulciber_destroy_generator(generator);
}
