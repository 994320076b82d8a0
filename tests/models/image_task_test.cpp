// Images in slices: a task leaves in the application's memory what embed() and attention() give.
#include "mulciber/image_task.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <random>

#include "mulciber/error.h"
#include "runtime/device.h"
#include "tests/application_destination.h"
#include "tests/catch.h"
#include "tests/image_destination.h"
#include "tests/support.h"
#include "tests/vulkan_application.h"

using namespace mulciber;
using namespace mulciber::tests;

namespace {

Image drawn_image(uint32_t width, uint32_t height, unsigned seed) {
  Image image;
  image.width = width;
  image.height = height;
  image.rgb.resize(uint64_t{width} * height * 3);
  std::mt19937 random(seed);
  for (uint8_t& byte : image.rgb) byte = static_cast<uint8_t>(random());
  return image;
}

/// Records all slices, each into a command buffer as an application would, with budgets drawn from
/// a seed.
void record_in_slices(Device& device, FrameTask& task, unsigned seed) {
  std::mt19937 random(seed);
  while (!task.done()) {
    FrameSlice slice;
    run_commands(device, [&](VkCommandBuffer commands) {
      slice = task.record(commands, std::uniform_real_distribution<>(0, 300)(random));
    });
    task.completed(slice.number);
  }
}

}  // namespace

TEST_CASE(
    "An image's vector, states and maps go into the application's memory, however it is cut") {
  VulkanApplication application;
  const auto device = adopt_device(application.lent());
  ImageEncoder encoder(device, digits());
  const Image image = drawn_image(20, 30, 1);
  for (const bool normalize : {false, true}) {
    const std::vector<float> expected = encoder.embed(image, {.normalize = normalize}).values;
    const ImageAttention maps = encoder.attention(image);
    for (const unsigned seed : {1u, 2u, 3u}) {
      ImageTask task(encoder, image, {.normalize = normalize, .attention = true});
      REQUIRE(task.vector_width() == expected.size());
      REQUIRE(task.patches().width == maps.columns);
      REQUIRE(task.patches().height == maps.rows);
      REQUIRE(task.layers() == maps.layers);
      REQUIRE(task.heads() == maps.heads);
      const uint64_t allocations = device->counters().allocations;
      record_in_slices(*device, task, seed);
      const size_t grid = size_t{maps.rows} * maps.columns,
                   states = size_t{task.tokens()} * task.state_width();
      CHECK(device->counters().allocations == allocations);
      const Destination vector(*device, expected.size()), state(*device, states),
          all(*device, maps.maps.size());
      run_commands(*device, [&](VkCommandBuffer commands) {
        task.record_vector(commands, vector.buffer);
        task.record_states(commands, state.buffer);
        for (uint32_t map = 0; map < maps.layers * maps.heads; ++map) {
          ApplicationBuffer part = all.buffer;
          part.offset += map * grid * sizeof(float);
          part.size = grid * sizeof(float);
          task.record_attention(commands, part, {map / maps.heads, map % maps.heads, {}});
        }
      });
      CHECK(std::equal(expected.begin(), expected.end(), vector.floats()));
      CHECK(std::equal(maps.maps.begin(), maps.maps.end(), all.floats()));
      CHECK(std::ranges::any_of(std::span(state.floats(), states),
                                [](float value) { return value != 0; }));
      const ImageVector result = task.result();
      CHECK(result.complete);
      CHECK(result.values == expected);
    }
  }
}

TEST_CASE("A grid of patches goes into the application's image, of the token that is asked for") {
  VulkanApplication application;
  const auto device = adopt_device(application.lent());
  ImageEncoder encoder(device, digits());
  ImageTask task(encoder, drawn_image(32, 32, 2), {.attention = true});
  finish(task);
  const VkExtent2D grid = task.patches();
  const size_t patches = size_t{grid.width} * grid.height;
  for (const std::optional<uint32_t> patch :
       {std::optional<uint32_t>{}, std::optional<uint32_t>{0}, std::optional<uint32_t>{3}}) {
    const PatchMap map = {task.layers() - 1, 1, patch};
    ImageDestination destination(application, VK_FORMAT_R32_SFLOAT, 4, grid);
    const Destination floats(*device, patches);
    run_commands(*device, [&](VkCommandBuffer commands) {
      task.record_attention(commands, destination.to, map);
      task.record_attention(commands, floats.buffer, map);
    });
    const std::vector<uint8_t> texels = destination.read(*device);
    CHECK(std::memcmp(texels.data(), floats.floats(), patches * sizeof(float)) == 0);
    float sum = 0;
    for (size_t i = 0; i < patches; ++i) sum += floats.floats()[i];
    CHECK(sum > 0);
    CHECK(sum <= 1.0001f);  // the rest is the class token's
  }
}

TEST_CASE("Pixels of the application's own are read where they are") {
  VulkanApplication application;
  const auto device = adopt_device(application.lent());
  ImageEncoder encoder(device, digits());
  // The image has the model's own size, so nothing is resized.
  const Image image = encoder.attention(drawn_image(32, 32, 3)).seen;
  const Destination pixels(*device, uint64_t{image.width} * image.height);
  auto* words = reinterpret_cast<uint32_t*>(pixels.memory.view().mapped);
  for (size_t i = 0; i < image.rgb.size() / 3; ++i)
    words[i] = uint32_t{image.rgb[i * 3]} | uint32_t{image.rgb[i * 3 + 1]} << 8 |
               uint32_t{image.rgb[i * 3 + 2]} << 16 | 0x7f000000u;
  ImageTask task(encoder, pixels.buffer, {image.width, image.height});
  CHECK(task.layers() == 0);
  CHECK(task.heads() == 0);
  record_in_slices(*device, task, 4);
  CHECK(task.result().values == encoder.embed(image).values);

  ApplicationBuffer small = pixels.buffer;
  small.size -= 4;
  CHECK_THROWS_AS(ImageTask(encoder, small, {image.width, image.height}), SettingError);
  CHECK_THROWS_AS(ImageTask(encoder, pixels.buffer, {image.width + 1, image.height}), SettingError);
  CHECK_THROWS_AS(ImageTask(encoder, pixels.buffer, {image.width - 1, image.height}), ModelError);
}

TEST_CASE("What a task of an image does not have is refused with the reason") {
  VulkanApplication application;
  const auto device = adopt_device(application.lent());
  ImageEncoder encoder(device, digits());
  ImageTask task(encoder, drawn_image(32, 32, 5), {.attention = true});
  const VkExtent2D grid = task.patches();
  const Destination map(*device, uint64_t{grid.width} * grid.height);
  const auto refused = [&](ImageTask& of, const PatchMap& which) -> std::string {
    std::string message;
    run_commands(*device, [&](VkCommandBuffer commands) {
      try {
        of.record_attention(commands, map.buffer, which);
      } catch (const SettingError& error) {
        message = error.what();
      }
    });
    return message;
  };
  CHECK(refused(task, {}).find("not recorded yet") != std::string::npos);
  CHECK_THROWS_AS(task.result(), SettingError);
  finish(task);
  CHECK(refused(task, {}).empty());
  CHECK(refused(task, {99, 0, {}}).find("layer 99") != std::string::npos);
  CHECK(refused(task, {0, 99, {}}).find("head 99") != std::string::npos);
  CHECK(refused(task, {0, 0, 4096}).find("patch 4096") != std::string::npos);
  ImageTask without(encoder, drawn_image(32, 32, 6));
  finish(without);
  CHECK(refused(without, {}).find("ImageTaskOptions::attention") != std::string::npos);
  ImageTask cancelled(encoder, drawn_image(32, 32, 7));
  cancelled.cancel();
  finish(cancelled);
  CHECK_FALSE(cancelled.result().complete);
}
