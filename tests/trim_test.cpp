// Device memory that a host takes back while a model stays loaded.
#include "mulciber/embedding.h"
#include "runtime/device.h"
#include "tests/catch.h"
#include "tests/support.h"
#include "tests/vulkan_host.h"

using namespace mulciber;
using namespace mulciber::tests;

TEST_CASE("A trimmed translator holds what it held when it was loaded, and goes on") {
  VulkanHost host;
  const auto device = adopt_device(host.lent());
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

  // What tasks under way use stays.
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
