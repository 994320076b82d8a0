// Waiting for a task's slices with a timeout.
#include <limits>
#include <string>

#include "runtime/device.h"
#include "tests/catch.h"
#include "tests/held_fences.h"
#include "tests/support.h"
#include "tests/vulkan_application.h"

#include "mulciber/embedding.h"

using namespace mulciber;
using namespace mulciber::tests;

namespace {

const std::string kWaitedText = "The old house stands near the river.";
constexpr uint64_t kForever = std::numeric_limits<uint64_t>::max();

}  // namespace

TEST_CASE("Waiting with a timeout says whether a task's slices have ended") {
  const VulkanApplication application;
  HeldFences fences(application);
  ApplicationDevice lent = application.lent();
  lent.queue.submit = [&](VkQueue queue, const VkSubmitInfo& info, VkFence fence) {
    return fences.submit(queue, info, fence);
  };
  Translator translator(adopt_device(lent), bundled_model());
  const Translation whole = translator.translate(kWaitedText);
  TranslationTask task(translator, kWaitedText);
  CHECK(task.wait(0));  // nothing was submitted
  CHECK(task.wait(kForever));
  fences.hold();
  CHECK(task.step(1000).slice.number == 1);
  CHECK_FALSE(task.wait(0));
  CHECK(task.step(1000).slice.number == 2);
  CHECK_FALSE(task.wait(1000));
  CHECK(task.step(1000).waits);  // both are still under way
  CHECK_FALSE(task.done());
  fences.release();
  CHECK(task.wait(kForever));
  while (!task.done()) {
    CHECK(task.step(1000).slice.number > 2);
    CHECK(task.wait(kForever));
  }
  CHECK(task.wait(0));
  CHECK(task.result().ids == whole.ids);
  CHECK(task.result().score == whole.score);
}

TEST_CASE("A timeout below that of hung submissions leaves the device alive") {
  const VulkanApplication application;
  HeldFences fences(application);
  ApplicationDevice lent = application.lent();
  lent.queue.submit = [&](VkQueue queue, const VkSubmitInfo& info, VkFence fence) {
    return fences.submit(queue, info, fence);
  };
  const auto device = adopt_device(lent, {.hang_seconds = 1e-9});
  fences.hold();
  const Ticket ticket = device->submit({});
  CHECK_FALSE(device->wait(ticket, 0));
  CHECK_FALSE(device->finished(ticket));  // throws on a lost device
  CHECK_THROWS_WITH(device->wait(ticket, kForever),
                    Catch::Matchers::ContainsSubstring("did not finish a submission"));
  CHECK_THROWS_WITH(device->wait(ticket, 0), Catch::Matchers::ContainsSubstring("lost earlier"));
  fences.release();
}
