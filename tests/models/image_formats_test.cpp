// Copies into an application's images of every format, compared with the numbers themselves.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "base/half.h"
#include "models/vision/image_copies.h"
#include "runtime/device.h"
#include "runtime/transfer.h"
#include "tests/application_destination.h"
#include "tests/catch.h"
#include "tests/image_destination.h"
#include "tests/support.h"
#include "tests/vulkan_application.h"

#include "mulciber/embedding.h"

using namespace mulciber;
using namespace mulciber::tests;

namespace {

struct Format {
  VkFormat format;
  uint32_t bytes;  // bytes per texel
};
constexpr Format kFormats[] = {{VK_FORMAT_R32_SFLOAT, 4},     {VK_FORMAT_R16_SFLOAT, 2},
                               {VK_FORMAT_R8_UNORM, 1},       {VK_FORMAT_R16_UNORM, 2},
                               {VK_FORMAT_R8G8B8A8_UNORM, 4}, {VK_FORMAT_B8G8R8A8_UNORM, 4}};

bool can_copy_into(const VulkanApplication& application, VkFormat format) {
  const auto ask = reinterpret_cast<PFN_vkGetPhysicalDeviceFormatProperties>(
      application.physical.get_instance_proc_addr(application.physical.instance,
                                                  "vkGetPhysicalDeviceFormatProperties"));
  VkFormatProperties properties;
  ask(application.physical.physical_device, format, &properties);
  constexpr VkFormatFeatureFlags kBoth =
      VK_FORMAT_FEATURE_TRANSFER_DST_BIT | VK_FORMAT_FEATURE_TRANSFER_SRC_BIT;
  return (properties.optimalTilingFeatures & kBoth) == kBoth;
}

/// The texel's largest error, in steps of its own format; for floats in units in the last place.
double steps_off(const Format& format, const uint8_t* texel, float x) {
  const double unit = std::clamp(double{x}, 0.0, 1.0);
  const auto word = [&](auto of) {
    std::memcpy(&of, texel, sizeof(of));
    return of;
  };
  switch (format.format) {
    case VK_FORMAT_R32_SFLOAT: return word(float{}) == x ? 0 : 1e9;
    case VK_FORMAT_R16_SFLOAT:
      return std::abs(half_to_float(word(uint16_t{})) - x) /
             std::max(std::abs(x) * 0x1p-11, 0x1p-25);
    case VK_FORMAT_R8_UNORM: return std::abs(texel[0] - unit * 255);
    case VK_FORMAT_R16_UNORM: return std::abs(word(uint16_t{}) - unit * 65535);
    default:
      if (texel[1] != texel[0] || texel[2] != texel[0] || texel[3] != 255) return 1e9;
      return std::abs(texel[0] - unit * 255);
  }
}

/// The error that a conversion may have: half a step and the rounding of the product before it; for
/// a half float, either neighbour.
double most_off(const Format& format) {
  switch (format.format) {
    case VK_FORMAT_R32_SFLOAT: return 0;
    case VK_FORMAT_R16_SFLOAT: return 2;
    case VK_FORMAT_R16_UNORM: return 0.5 + 65536 * 0x1p-23;
    default: return 0.5 + 256 * 0x1p-23;
  }
}

}  // namespace

TEST_CASE("Numbers become texels of every format, a part of the rows at a time") {
  VulkanApplication application;
  const auto device = adopt_device(application.lent());
  constexpr uint32_t kRows = 11, kColumns = 13, kStride = 16;
  std::mt19937 random(5);
  std::uniform_real_distribution<float> drawn(-0.1f, 1.1f);
  std::vector<float> numbers(size_t{kRows} * kStride);
  for (float& number : numbers) number = drawn(random);
  const Buffer memory =
      device->memory().allocate(numbers.size() * sizeof(float), MemoryUsage::kActivations);
  upload(*device, memory.view(), std::as_bytes(std::span(numbers)));
  const PaddedRows rows = {memory.view(), kRows, kColumns, kStride};
  // The copies have memory for all rows, for three rows, and for one.
  for (const uint32_t at_once : {kRows, 3u, 1u}) {
    ImageCopies copies(*device, {.rows = at_once, .stride = kStride});
    for (const Format& format : kFormats) {
      if (!can_copy_into(application, format.format)) continue;
      // Two copies in one command buffer, one below the other: the second waits before it reuses
      // the first one's memory.
      ImageDestination destination(application, format.format, format.bytes,
                                   {kColumns + 2, 2 * kRows});
      const uint64_t allocations = device->counters().allocations,
                     pipelines = device->counters().pipelines;
      run_commands(*device, [&](VkCommandBuffer commands) {
        ApplicationImage to = destination.to;
        to.offset = {2, 0};
        copies.record(commands, rows, to, "numbers");
        to.layout = to.final_layout;
        to.offset = {0, kRows};
        copies.record(commands, rows, to, "numbers");
      });
      CHECK(device->counters().allocations == allocations);
      CHECK(device->counters().pipelines == pipelines);
      const std::vector<uint8_t> texels = destination.read(*device);
      double worst = 0;
      for (uint32_t y = 0; y < 2 * kRows; ++y) {
        for (uint32_t x = 0; x < kColumns; ++x) {
          const uint32_t left = y < kRows ? 2 : 0;
          const uint8_t* texel = &texels[(y * (kColumns + 2) + left + x) * format.bytes];
          worst = std::max(worst, steps_off(format, texel, numbers[y % kRows * kStride + x]));
        }
      }
      INFO("format " << format.format << ", " << at_once << " rows at once");
      CHECK(worst <= most_off(format));
    }
  }
}

TEST_CASE("An attention map in an image of 8 bits is that in a buffer, rounded") {
  VulkanApplication application;
  const auto device = adopt_device(application.lent());
  Translator translator(device, (source_dir() / "assets/en-de").string());
  AttentionTask task(translator, translator.translate("He has two dogs."));
  finish(task);
  const VkExtent2D extent = task.extent(AttentionKind::kCross);
  const uint64_t size = uint64_t{extent.width} * extent.height;
  const AttentionMap map = {AttentionKind::kCross, 1, 2};
  const Destination floats(*device, size);
  ImageDestination destination(application, VK_FORMAT_R8_UNORM, 1, extent);
  run_commands(*device, [&](VkCommandBuffer commands) {
    task.record_attention(commands, floats.buffer, map);
    task.record_attention(commands, destination.to, map);
  });
  const std::vector<uint8_t> texels = destination.read(*device);
  size_t wrong = 0;
  for (uint64_t i = 0; i < size; ++i)
    wrong += steps_off({VK_FORMAT_R8_UNORM, 1}, &texels[i], floats.floats()[i]) >
             most_off({VK_FORMAT_R8_UNORM, 1});
  CHECK(wrong == 0);

  ApplicationImage other = destination.to;
  other.format = VK_FORMAT_R8G8B8A8_SRGB;
  CHECK_THROWS_AS(
      run_commands(*device,
                   [&](VkCommandBuffer commands) { task.record_attention(commands, other, map); }),
      SettingError);
}
