// Images in C: vectors, states and maps are those of C++.
#include "mulciber/mulciber_c_pictures.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "mulciber/mulciber_c_tasks.h"
#include "mulciber/picture_task.h"
#include "tests/c_destination.h"
#include "tests/c_session.h"
#include "tests/catch.h"
#include "tests/host_picture.h"
#include "tests/support.h"

using namespace mulciber;
using namespace mulciber::tests;
using Catch::Matchers::ContainsSubstring;

namespace {

Picture drawn_picture(uint32_t width, uint32_t height) {
  Picture picture = {.width = width, .height = height, .rgb = {}};
  picture.rgb.resize(size_t{width} * height * 3);
  std::mt19937 random(7);
  for (uint8_t& byte : picture.rgb) byte = static_cast<uint8_t>(random());
  return picture;
}

MulciberPicture c_picture(const Picture& picture) {
  return {sizeof(MulciberPicture), picture.width, picture.height, picture.rgb.data()};
}

struct Seeing : Session {
  MulciberImageEncoder* encoder = nullptr;
  std::shared_ptr<Device> same = adopt_device(host.lent());
  ImageEncoder twin{same, digits()};

  Seeing() : Session(digits()) {
    REQUIRE(mulciber_load_image_encoder(c, device, model, nullptr, &encoder) == MULCIBER_OK);
  }
  ~Seeing() { mulciber_destroy_image_encoder(encoder); }
  MulciberPictureReport report(const MulciberTask* task) const {
    MulciberPictureReport found = {sizeof(found)};
    REQUIRE(mulciber_describe_picture(c, task, &found) == MULCIBER_OK);
    return found;
  }
};

}  // namespace

TEST_CASE("A picture in C has the vector, states and maps that it has in C++") {
  const Seeing seeing;
  MulciberContext* c = seeing.c;
  const Picture picture = drawn_picture(20, 30);
  const MulciberPicture given = c_picture(picture);
  for (const bool mean : {false, true}) {
    const MulciberPictureInfo info = {sizeof(info), mean, VK_TRUE, VK_TRUE};
    MulciberTask* task = nullptr;
    REQUIRE(mulciber_begin_picture(c, seeing.encoder, &given, &info, &task) == MULCIBER_OK);
    CHECK_FALSE(mulciber_is_recorded(task));
    seeing.finish(task);
    CHECK(mulciber_is_recorded(task));
    const PicturePoolingChoice pooling =
        mean ? PicturePoolingChoice::kMean : PicturePoolingChoice::kModel;
    PictureTask twin(const_cast<ImageEncoder&>(seeing.twin), picture,
                     {.pooling = pooling, .normalize = true, .attention = true});
    finish(twin);
    const MulciberPictureReport report = seeing.report(task);
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
    const MulciberHostBuffer to_vector = c_buffer(c_vector), to_states = c_buffer(c_states),
                             to_map = c_buffer(c_map);
    HostPicture image(seeing.host, VK_FORMAT_R32_SFLOAT, 4, twin.patches());
    HostPicture its_image(seeing.host, VK_FORMAT_R32_SFLOAT, 4, twin.patches());
    const MulciberHostImage to_image = c_image(image.to);
    run_commands(device, [&](VkCommandBuffer commands) {
      REQUIRE(mulciber_record_vector(c, task, commands, &to_vector) == MULCIBER_OK);
      REQUIRE(mulciber_record_states(c, task, commands, &to_states) == MULCIBER_OK);
      REQUIRE(mulciber_record_patches_buffer(c, task, commands, &to_map, &of_patch) == MULCIBER_OK);
      REQUIRE(mulciber_record_patches_image(c, task, commands, &to_image, &of_whole) ==
              MULCIBER_OK);
      twin.record_states(commands, its_states.buffer);
      twin.record_attention(commands, its_map.buffer, {.layer = 1, .head = 0, .patch = 2});
      twin.record_attention(commands, its_image.to, {.layer = 0, .head = 1, .patch = {}});
    });
    CHECK(std::equal(vector.begin(), vector.end(), c_vector.floats()));
    CHECK(std::equal(its_states.floats(), its_states.floats() + states, c_states.floats()));
    CHECK(std::equal(its_map.floats(), its_map.floats() + patches, c_map.floats()));
    CHECK(image.read(device) == its_image.read(device));
    mulciber_destroy_task(task);
  }
}

TEST_CASE("Pixels of the host's own are read in C where they are") {
  const Seeing seeing;
  MulciberContext* c = seeing.c;
  auto& twin = const_cast<ImageEncoder&>(seeing.twin);
  const Picture picture = twin.attention(drawn_picture(32, 32)).seen;
  const size_t count = picture.rgb.size() / 3;
  const Destination pixels(*seeing.same, count);
  auto* words = reinterpret_cast<uint8_t*>(pixels.memory.view().mapped);
  for (size_t i = 0; i < count; ++i) std::memcpy(words + i * 4, &picture.rgb[i * 3], 3);
  MulciberHostBuffer from = c_buffer(pixels);
  const VkExtent2D extent = {picture.width, picture.height};
  MulciberTask* task = nullptr;
  REQUIRE(mulciber_begin_picture_of_pixels(c, seeing.encoder, &from, &extent, nullptr, &task) ==
          MULCIBER_OK);
  seeing.finish(task);
  const MulciberPictureReport report = seeing.report(task);
  CHECK(report.layers == 0);
  std::vector<float> vector(report.vector_width);
  REQUIRE(mulciber_vector(c, task, vector.data()) == MULCIBER_OK);
  CHECK(vector == twin.embed(picture).values);
  mulciber_destroy_task(task);
  from.bytes -= 4;
  CHECK(mulciber_begin_picture_of_pixels(c, seeing.encoder, &from, &extent, nullptr, &task) ==
        MULCIBER_ERROR_SETTING);
  CHECK(task == nullptr);
}

TEST_CASE("What is no picture is refused in C with the reason") {
  const Seeing seeing;
  MulciberContext* c = seeing.c;
  const Picture picture = drawn_picture(4, 4);
  MulciberTask* task = nullptr;
  const auto refused = [&](MulciberPicture given) {
    CHECK(mulciber_begin_picture(c, seeing.encoder, &given, nullptr, &task) ==
          MULCIBER_ERROR_SETTING);
    CHECK(task == nullptr);
    return std::string(mulciber_message(c));
  };
  MulciberPicture bad = c_picture(picture);
  bad.width = 0;
  CHECK_THAT(refused(bad), ContainsSubstring("0 x 4 pixels"));
  bad.width = bad.height = 0xffffffff;  // never read: no such memory exists
  CHECK_THAT(refused(bad), ContainsSubstring("4294967295 x 4294967295 pixels"));
  bad = c_picture(picture);
  bad.rgb = nullptr;
  CHECK_THAT(refused(bad), ContainsSubstring("rgb"));

  const MulciberPicture given = c_picture(picture);
  REQUIRE(mulciber_begin_picture(c, seeing.encoder, &given, nullptr, &task) == MULCIBER_OK);
  std::vector<float> vector(seeing.report(task).vector_width);
  CHECK(mulciber_vector(c, task, vector.data()) == MULCIBER_ERROR_SETTING);  // not done
  mulciber_cancel(task);
  seeing.finish(task);
  CHECK(mulciber_vector(c, task, vector.data()) == MULCIBER_ERROR_SETTING);
  CHECK_THAT(mulciber_message(c), ContainsSubstring("was cancelled"));
  mulciber_destroy_task(task);

  MulciberPictureReport report = {sizeof(report)};
  CHECK(mulciber_describe_picture(c, nullptr, &report) == MULCIBER_ERROR_SETTING);
}
