// Images in C: vectors, states and maps are those of C++.
#include "mulciber/mulciber_c.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "mulciber/image_task.h"
#include "tests/c_destination.h"
#include "tests/c_session.h"
#include "tests/catch.h"
#include "tests/image_destination.h"
#include "tests/support.h"

using namespace mulciber;
using namespace mulciber::tests;
using Catch::Matchers::ContainsSubstring;

namespace {

Image drawn_image(uint32_t width, uint32_t height) {
  Image image = {.width = width, .height = height, .rgb = {}};
  image.rgb.resize(size_t{width} * height * 3);
  std::mt19937 random(7);
  for (uint8_t& byte : image.rgb) byte = static_cast<uint8_t>(random());
  return image;
}

MulciberImage image_in_c(const Image& image) {
  return {sizeof(MulciberImage), image.width, image.height, image.rgb.data(), nullptr};
}

struct Seeing : Session {
  MulciberImageEncoder* encoder = nullptr;
  std::shared_ptr<Device> same = adopt_device(application.lent());
  ImageEncoder twin{same, digits()};

  Seeing() : Session(digits()) {
    REQUIRE(mulciber_load_image_encoder(c, device, model, nullptr, &encoder) == MULCIBER_OK);
  }
  ~Seeing() { mulciber_destroy_image_encoder(encoder); }
  MulciberImageReport report(const MulciberTask* task) const {
    MulciberImageReport found = {sizeof(found)};
    REQUIRE(mulciber_describe_image(c, task, &found) == MULCIBER_OK);
    return found;
  }
};

}  // namespace

TEST_CASE("An image in C has the vector, states and maps that it has in C++") {
  const Seeing seeing;
  MulciberContext* c = seeing.c;
  const Image image = drawn_image(20, 30);
  const MulciberImage given = image_in_c(image);
  for (const bool mean : {false, true}) {
    const MulciberImageInfo info = {sizeof(info), mean, VK_TRUE, VK_TRUE};
    MulciberTask* task = nullptr;
    REQUIRE(mulciber_begin_image(c, seeing.encoder, &given, &info, &task) == MULCIBER_OK);
    CHECK_FALSE(mulciber_is_recorded(task));
    seeing.finish(task);
    CHECK(mulciber_is_recorded(task));
    const ImagePoolingChoice pooling =
        mean ? ImagePoolingChoice::kMean : ImagePoolingChoice::kModel;
    ImageTask twin(const_cast<ImageEncoder&>(seeing.twin), image,
                   {.pooling = pooling, .normalize = true, .attention = true});
    finish(twin);
    const MulciberImageReport report = seeing.report(task);
    REQUIRE(report.patches.width == twin.patches().width);
    REQUIRE(report.patches.height == twin.patches().height);
    REQUIRE(report.vector_width == twin.vector_width());
    REQUIRE(report.state_width == twin.state_width());
    REQUIRE(report.tokens == twin.tokens());
    REQUIRE(report.layers == twin.layers());
    REQUIRE(report.heads == twin.heads());

    std::vector<float> vector(report.vector_width);
    REQUIRE(mulciber_vector(c, task, vector.data()) == MULCIBER_OK);
    CHECK(vector == twin.result().values);
    const size_t states = size_t{report.tokens} * report.state_width,
                 patches = size_t{report.patches.width} * report.patches.height;
    const MulciberPatchMap of_patch = {sizeof(of_patch), 1, 0, VK_TRUE, 2},
                           of_whole = {sizeof(of_whole), 0, 1, VK_FALSE, 0};
    Device& device = *seeing.same;
    const Destination c_vector(device, vector.size()), c_states(device, states),
        c_map(device, patches), its_states(device, states), its_map(device, patches);
    const MulciberApplicationBuffer to_vector = c_buffer(c_vector), to_states = c_buffer(c_states),
                                    to_map = c_buffer(c_map);
    ImageDestination destination(seeing.application, VK_FORMAT_R32_SFLOAT, 4, twin.patches());
    ImageDestination its_destination(seeing.application, VK_FORMAT_R32_SFLOAT, 4, twin.patches());
    const MulciberApplicationImage to_image = c_image(destination.to);
    run_commands(device, [&](VkCommandBuffer commands) {
      REQUIRE(mulciber_record_vector(c, task, commands, &to_vector) == MULCIBER_OK);
      REQUIRE(mulciber_record_states(c, task, commands, &to_states) == MULCIBER_OK);
      REQUIRE(mulciber_record_patches_buffer(c, task, commands, &to_map, &of_patch) == MULCIBER_OK);
      REQUIRE(mulciber_record_patches_image(c, task, commands, &to_image, &of_whole) ==
              MULCIBER_OK);
      twin.record_states(commands, its_states.buffer);
      twin.record_attention(commands, its_map.buffer, {.layer = 1, .head = 0, .patch = 2});
      twin.record_attention(commands, its_destination.to, {.layer = 0, .head = 1, .patch = {}});
    });
    CHECK(std::equal(vector.begin(), vector.end(), c_vector.floats()));
    CHECK(std::equal(its_states.floats(), its_states.floats() + states, c_states.floats()));
    CHECK(std::equal(its_map.floats(), its_map.floats() + patches, c_map.floats()));
    CHECK(destination.read(device) == its_destination.read(device));
    mulciber_destroy_task(task);
  }
}

TEST_CASE("Pixels of the application's own are read in C where they are") {
  const Seeing seeing;
  MulciberContext* c = seeing.c;
  auto& twin = const_cast<ImageEncoder&>(seeing.twin);
  const Image image = twin.attention(drawn_image(32, 32)).seen;
  const size_t count = image.rgb.size() / 3;
  const Destination pixels(*seeing.same, count);
  auto* words = reinterpret_cast<uint8_t*>(pixels.memory.view().mapped);
  for (size_t i = 0; i < count; ++i) std::memcpy(words + i * 4, &image.rgb[i * 3], 3);
  MulciberApplicationBuffer from = c_buffer(pixels);
  const VkExtent2D extent = {image.width, image.height};
  MulciberImage given = {sizeof(given), extent.width, extent.height, nullptr, &from};
  MulciberTask* task = nullptr;
  REQUIRE(mulciber_begin_image(c, seeing.encoder, &given, nullptr, &task) == MULCIBER_OK);
  seeing.finish(task);
  const MulciberImageReport report = seeing.report(task);
  CHECK(report.layers == 0);
  std::vector<float> vector(report.vector_width);
  REQUIRE(mulciber_vector(c, task, vector.data()) == MULCIBER_OK);
  CHECK(vector == twin.embed(image).values);
  mulciber_destroy_task(task);
  from.bytes -= 4;
  CHECK(mulciber_begin_image(c, seeing.encoder, &given, nullptr, &task) == MULCIBER_ERROR_SETTING);
  CHECK(task == nullptr);
  given.rgb = image.rgb.data();
  CHECK(mulciber_begin_image(c, seeing.encoder, &given, nullptr, &task) == MULCIBER_ERROR_SETTING);
  CHECK_THAT(mulciber_message(c), ContainsSubstring("rgb and pixels"));
}

TEST_CASE("What is no image is refused in C with the reason") {
  const Seeing seeing;
  MulciberContext* c = seeing.c;
  const Image image = drawn_image(4, 4);
  MulciberTask* task = nullptr;
  const auto refused = [&](MulciberImage given) {
    CHECK(mulciber_begin_image(c, seeing.encoder, &given, nullptr, &task) ==
          MULCIBER_ERROR_SETTING);
    CHECK(task == nullptr);
    return std::string(mulciber_message(c));
  };
  MulciberImage bad = image_in_c(image);
  bad.width = 0;
  CHECK_THAT(refused(bad), ContainsSubstring("0 x 4 pixels"));
  bad.width = bad.height = 0xffffffff;  // never read: no such memory exists
  CHECK_THAT(refused(bad), ContainsSubstring("4294967295 x 4294967295 pixels"));
  bad = image_in_c(image);
  bad.rgb = nullptr;
  CHECK_THAT(refused(bad), ContainsSubstring("rgb"));

  const MulciberImage given = image_in_c(image);
  REQUIRE(mulciber_begin_image(c, seeing.encoder, &given, nullptr, &task) == MULCIBER_OK);
  std::vector<float> vector(seeing.report(task).vector_width);
  CHECK(mulciber_vector(c, task, vector.data()) == MULCIBER_ERROR_SETTING);  // not done
  mulciber_cancel(task);
  seeing.finish(task);
  CHECK(mulciber_vector(c, task, vector.data()) == MULCIBER_ERROR_SETTING);
  CHECK_THAT(mulciber_message(c), ContainsSubstring("was cancelled"));
  mulciber_destroy_task(task);

  MulciberImageReport report = {sizeof(report)};
  CHECK(mulciber_describe_image(c, nullptr, &report) == MULCIBER_ERROR_SETTING);
}
