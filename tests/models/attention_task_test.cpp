// Attention maps on the device: computed in slices, copied into the application's memory.
#include <algorithm>

#include "runtime/device.h"
#include "tests/application_destination.h"
#include "tests/catch.h"
#include "tests/support.h"
#include "tests/vulkan_application.h"

#include "mulciber/embedding.h"

using namespace mulciber;
using namespace mulciber::tests;

namespace {

const std::string kTaskSentence = "The old house stands near the river.";

struct Kind {
  AttentionKind kind;
  const std::vector<float>& expected;
  uint32_t layers, heads, queries, keys;
};

std::vector<Kind> kinds_of(const AttentionMaps& maps) {
  const uint32_t source = maps.source_length, target = maps.target_length;
  return {{AttentionKind::kEncoder, maps.encoder, maps.encoder_layers, maps.encoder_heads, source,
           source},
          {AttentionKind::kDecoder, maps.decoder, maps.decoder_layers, maps.decoder_heads, target,
           target},
          {AttentionKind::kCross, maps.cross, maps.cross_layers, maps.cross_heads, target, source}};
}

}  // namespace

TEST_CASE("Every attention map goes into an application's buffer as translate() gives it") {
  VulkanApplication application;
  const auto device = adopt_device(application.lent());
  Translator translator(device, (source_dir() / "assets/en-de").string());
  const Translation translation = translator.translate(kTaskSentence, {.attention = true});
  AttentionTask task(translator, translation);
  const uint64_t allocations = device->counters().allocations;
  finish(task);
  CHECK(device->counters().allocations == allocations);
  for (const Kind& kind : kinds_of(*translation.attention)) {
    const VkExtent2D extent = task.extent(kind.kind);
    REQUIRE(extent.width == kind.keys);
    REQUIRE(extent.height == kind.queries);
    const uint64_t map_size = uint64_t{kind.queries} * kind.keys;
    const uint64_t maps = uint64_t{kind.layers} * kind.heads;
    REQUIRE(kind.expected.size() == maps * map_size);
    const Destination all(*device, kind.expected.size());
    const uint64_t before = device->counters().allocations;
    run_commands(*device, [&](VkCommandBuffer commands) {
      for (uint32_t map = 0; map < maps; ++map) {
        ApplicationBuffer part = all.buffer;
        part.offset += map * map_size * sizeof(float);
        part.size = map_size * sizeof(float);
        task.record_attention(commands, part, {kind.kind, map / kind.heads, map % kind.heads});
      }
    });
    CHECK(device->counters().allocations == before);
    CHECK(std::equal(kind.expected.begin(), kind.expected.end(), all.floats()));
  }
}

TEST_CASE(
    "Maps of several translations are computed at once, and translate() goes on beside them") {
  VulkanApplication application;
  const auto device = adopt_device(application.lent());
  Translator translator(device, (source_dir() / "assets/en-de").string());
  // Both texts have the same numbers of tokens, so that all computations would share one program.
  const TranslateOptions with_attention = {.attention = true};
  const Translation first = translator.translate("He has two dogs.", with_attention);
  const Translation second = translator.translate("He has two cats.", with_attention);
  AttentionTask a(translator, first), b(translator, second);
  a.step(1);
  b.step(1);
  a.wait();
  b.wait();
  CHECK(translator.translate("He has two dogs.", with_attention).attention->cross ==
        first.attention->cross);
  finish(a);
  finish(b);
  for (const auto& [task, translation] : {std::pair{&a, &first}, std::pair{&b, &second}}) {
    const VkExtent2D extent = task->extent(AttentionKind::kCross);
    const size_t size = size_t{extent.width} * extent.height;
    const Destination map(*device, size);
    run_commands(*device, [&, task = task](VkCommandBuffer commands) {
      task->record_attention(commands, map.buffer, {AttentionKind::kCross, 0, 1});
    });
    const auto expected = translation->attention->cross.begin() + static_cast<std::ptrdiff_t>(size);
    CHECK(std::equal(map.floats(), map.floats() + size, expected));
  }
}

TEST_CASE("A map that cannot be recorded is refused with the reason") {
  VulkanApplication application;
  const auto device = adopt_device(application.lent());
  Translator translator(device, (source_dir() / "assets/en-de").string());
  const Translation translation = translator.translate(kTaskSentence);
  CHECK_THROWS_AS(AttentionTask(translator, translator.translate(" ")), ModelError);
  AttentionTask task(translator, translation);
  const VkExtent2D extent = task.extent(AttentionKind::kCross);
  const Destination map(*device, uint64_t{extent.width} * extent.height);
  const auto refused = [&](const auto& to, const AttentionMap& which) -> std::string {
    std::string message;
    run_commands(*device, [&](VkCommandBuffer commands) {
      try {
        task.record_attention(commands, to, which);
      } catch (const SettingError& error) {
        message = error.what();
      }
    });
    return message;
  };
  CHECK_FALSE(task.recorded());
  CHECK(refused(map.buffer, {}).find("not recorded yet") != std::string::npos);
  task.step(1);
  task.wait();
  CHECK_FALSE(task.recorded());
  finish(task);
  CHECK(task.recorded());
  CHECK(refused(map.buffer, {}).empty());
  CHECK(refused(map.buffer, {AttentionKind::kCross, 7, 0}).find("layer 7") != std::string::npos);
  CHECK(refused(map.buffer, {AttentionKind::kCross, 0, 99}).find("head 99") != std::string::npos);
  ApplicationBuffer small = map.buffer;
  small.size -= 4;
  CHECK(refused(small, {}).find(std::to_string(small.size)) != std::string::npos);
  ApplicationImage image;
  image.extent = extent;
  image.format = VK_FORMAT_R32_SFLOAT;
  CHECK_FALSE(refused(image, {}).empty());  // no image
  // The handle is never used: an image that does not fit is refused before.
  image.image = reinterpret_cast<VkImage>(uint64_t{1});
  image.offset = {1, 0};
  CHECK(refused(image, {}).find("texels from (1, 0) on") != std::string::npos);
  image.offset = {0, 0};
  image.format = VK_FORMAT_R8G8B8A8_SRGB;
  CHECK(refused(image, {}).find("VK_FORMAT_R32_SFLOAT") != std::string::npos);

  AttentionTask cancelled(translator, translation);
  cancelled.step(1);
  cancelled.cancel();
  cancelled.wait();
  CHECK(cancelled.done());
  CHECK_FALSE(cancelled.recorded());
}
