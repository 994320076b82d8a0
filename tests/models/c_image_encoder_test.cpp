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

/// Images that need two batches of two.
struct DrawnImages {
  std::vector<Image> images = {drawn_image(20, 30), drawn_image(32, 32), drawn_image(9, 70)};
  std::vector<MulciberImage> in_c;

  DrawnImages() {
    for (const Image& image : images) in_c.push_back(image_in_c(image));
  }
};

void check_attention(const MulciberImageAttention* found, const ImageAttention& expected) {
  REQUIRE(found != nullptr);
  CHECK(found->size == sizeof(*found));
  REQUIRE(found->layers == expected.layers);
  REQUIRE(found->heads == expected.heads);
  REQUIRE(found->rows == expected.rows);
  REQUIRE(found->columns == expected.columns);
  CHECK(std::equal(expected.maps.begin(), expected.maps.end(), found->maps));
  CHECK(std::equal(expected.rollout.begin(), expected.rollout.end(), found->rollout));
  REQUIRE(found->seen->width == expected.seen.width);
  REQUIRE(found->seen->height == expected.seen.height);
  CHECK(std::equal(expected.seen.rgb.begin(), expected.seen.rgb.end(), found->seen->rgb));
}

struct Seeing : Session {
  MulciberImageEncoder* encoder = nullptr;
  std::shared_ptr<Device> same = adopt_device(application.lent());
  ImageEncoder twin{same, digits()};

  Seeing() : Session(digits()) {
    REQUIRE(mulciber_load_image_encoder(c, device, model, nullptr, &encoder) == MULCIBER_OK);
  }
  ~Seeing() { mulciber_destroy_image_encoder(encoder); }
  ImageEncoder& in_cpp() const { return const_cast<ImageEncoder&>(twin); }
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

TEST_CASE("Embeddings of many images in C are those in C++") {
  const Seeing seeing;
  MulciberContext* c = seeing.c;
  const DrawnImages drawn;
  MulciberImageEncoderReport report = {sizeof(report)};
  REQUIRE(mulciber_describe_image_encoder(c, seeing.encoder, &report) == MULCIBER_OK);
  const ImageExtents extents = seeing.in_cpp().extents();
  CHECK(report.vector_width == extents.width);
  CHECK(report.state_width == extents.state_width);
  CHECK(report.image_width == extents.image_width);
  CHECK(report.image_height == extents.image_height);
  CHECK(report.any_size == 0);
  CHECK(report.patch == extents.patch);
  CHECK(report.first_tokens == 1);
  CHECK(report.layers == extents.layers);
  CHECK(report.heads == extents.heads);
  CHECK(report.text_tokens == 0);
  MulciberImageInfo info = {sizeof(info)};
  info.batch_images = 2;
  for (const bool mean : {false, true}) {
    info.mean = info.normalize = mean;
    const std::vector<ImageVector> expected = seeing.in_cpp().embed(
        drawn.images, {.pooling = mean ? ImagePoolingChoice::kMean : ImagePoolingChoice::kModel,
                       .normalize = mean,
                       .batch = {.batch_images = 2}});
    std::vector<float> vectors(3 * report.vector_width);
    REQUIRE(mulciber_embed_images(c, seeing.encoder, 3, drawn.in_c.data(), &info, vectors.data(),
                                  nullptr, nullptr) == MULCIBER_OK);
    for (size_t i = 0; i < 3; ++i)
      CHECK(std::equal(expected[i].values.begin(), expected[i].values.end(),
                       &vectors[i * report.vector_width]));
  }
  MulciberImageStatistics statistics = {sizeof(statistics)};
  REQUIRE(mulciber_image_encoder_statistics(c, seeing.encoder, &statistics) == MULCIBER_OK);
  CHECK(statistics.images == 3);
  CHECK(statistics.batches == 2);
  CHECK(statistics.weight_bytes == seeing.in_cpp().statistics().weight_bytes);
  CHECK(statistics.peak_device_bytes > 0);
  uint64_t freed = 0;
  CHECK(mulciber_trim_image_encoder(c, seeing.encoder, &freed) == MULCIBER_OK);
  CHECK(freed > 0);
  CHECK(mulciber_trim_image_encoder(c, seeing.encoder, nullptr) == MULCIBER_OK);
  CHECK(mulciber_embed_images(c, seeing.encoder, 0, nullptr, nullptr, nullptr, nullptr, nullptr) ==
        MULCIBER_OK);
}

TEST_CASE("Hidden states and attention of many images in C are those in C++") {
  const Seeing seeing;
  MulciberContext* c = seeing.c;
  const DrawnImages drawn;
  std::vector<uint32_t> told;
  MulciberImageInfo info = {sizeof(info)};
  info.states = info.attention = VK_TRUE;
  info.batch_images = 2;
  info.user = &told;
  info.on_progress = [](void* user, uint32_t done, uint32_t total) {
    CHECK(total == 6);
    static_cast<std::vector<uint32_t>*>(user)->push_back(done);
  };
  MulciberResult* result = nullptr;
  const MulciberImageEmbedding* found = nullptr;
  REQUIRE(mulciber_embed_images(c, seeing.encoder, 3, drawn.in_c.data(), &info, nullptr, &result,
                                &found) == MULCIBER_OK);
  CHECK(told == std::vector<uint32_t>{2, 3, 4, 5, 6});
  const std::vector<ImageStates> states = seeing.in_cpp().states(drawn.images, {.batch_images = 2});
  for (size_t i = 0; i < 3; ++i) {
    CHECK(found[i].size == sizeof(found[i]));
    CHECK(found[i].complete);
    REQUIRE(found[i].tokens == states[i].tokens);
    REQUIRE(found[i].state_width == states[i].width);
    CHECK(found[i].rows == states[i].rows);
    CHECK(found[i].columns == states[i].columns);
    CHECK(std::equal(states[i].values.begin(), states[i].values.end(), found[i].states));
    check_attention(found[i].attention, seeing.in_cpp().attention(drawn.images[i]));
  }
  mulciber_destroy_result(result);
}

TEST_CASE("A cancelled call in C says which images are done") {
  const Seeing seeing;
  MulciberContext* c = seeing.c;
  const DrawnImages drawn;
  MulciberCancel* cancel = nullptr;
  REQUIRE(mulciber_create_cancel(c, &cancel) == MULCIBER_OK);
  MulciberImageInfo info = {sizeof(info)};
  info.batch_images = 2;
  info.cancel = cancel;
  info.user = cancel;
  info.on_progress = [](void* user, uint32_t, uint32_t) {
    mulciber_request_cancel(static_cast<MulciberCancel*>(user));
  };
  std::vector<float> vectors(3 * 64, 7.0f);
  MulciberResult* result = nullptr;
  const MulciberImageEmbedding* found = nullptr;
  REQUIRE(mulciber_embed_images(c, seeing.encoder, 3, drawn.in_c.data(), &info, vectors.data(),
                                &result, &found) == MULCIBER_OK);
  CHECK((found[0].complete && found[1].complete));
  CHECK_FALSE(found[2].complete);
  const ImageVector second = seeing.in_cpp().embed(std::span(drawn.images).first(2))[1];
  CHECK(std::equal(second.values.begin(), second.values.end(), &vectors[64]));
  CHECK(std::all_of(&vectors[128], &vectors[128] + 64, [](float value) { return value == 0; }));
  mulciber_destroy_result(result);
  info.states = info.attention = VK_TRUE;
  REQUIRE(mulciber_embed_images(c, seeing.encoder, 3, drawn.in_c.data(), &info, nullptr, &result,
                                &found) == MULCIBER_OK);  // the flag is still set
  CHECK_FALSE(found[0].complete);
  CHECK(found[0].states == nullptr);
  CHECK(found[0].attention == nullptr);
  mulciber_destroy_result(result);
  mulciber_destroy_cancel(cancel);
}

TEST_CASE("What cannot be embedded is refused in C with the reason") {
  const Seeing seeing;
  MulciberContext* c = seeing.c;
  const DrawnImages drawn;
  const MulciberImage* images = drawn.in_c.data();
  std::vector<float> vectors(64);
  MulciberImageInfo info = {sizeof(info)};
  MulciberResult* result = nullptr;
  const MulciberImageEmbedding* found = nullptr;
  const auto refused = [&](MulciberStatus status) {
    CHECK(status == MULCIBER_ERROR_SETTING);
    CHECK((result == nullptr && found == nullptr));
    return seeing.context.message();
  };
  CHECK_THAT(refused(mulciber_embed_images(c, nullptr, 1, images, nullptr, vectors.data(), &result,
                                           &found)),
             ContainsSubstring("encoder: is NULL"));
  CHECK_THAT(refused(mulciber_embed_images(c, seeing.encoder, 1, nullptr, nullptr, vectors.data(),
                                           &result, &found)),
             ContainsSubstring("images: is NULL"));
  CHECK_THAT(refused(mulciber_embed_images(c, seeing.encoder, 1, images, nullptr, nullptr, nullptr,
                                           nullptr)),
             ContainsSubstring("vectors: is NULL"));
  CHECK_THAT(refused(mulciber_embed_images(c, seeing.encoder, 1, images, nullptr, vectors.data(),
                                           &result, nullptr)),
             ContainsSubstring("embeddings: is NULL"));
  info.states = VK_TRUE;
  CHECK_THAT(refused(mulciber_embed_images(c, seeing.encoder, 1, images, &info, vectors.data(),
                                           nullptr, nullptr)),
             ContainsSubstring("result: is NULL"));
  MulciberApplicationBuffer buffer = {sizeof(buffer)};
  MulciberImage bad = images[0];
  bad.pixels = &buffer;
  CHECK_THAT(refused(mulciber_embed_images(c, seeing.encoder, 1, &bad, nullptr, vectors.data(),
                                           nullptr, nullptr)),
             ContainsSubstring("has pixels in a buffer"));
  bad = {sizeof(bad), 0, 4, images[0].rgb, nullptr};
  CHECK_THAT(refused(mulciber_embed_images(c, seeing.encoder, 1, &bad, nullptr, vectors.data(),
                                           nullptr, nullptr)),
             ContainsSubstring("0 x 4 pixels"));
  bad.size = 0;
  CHECK_THAT(refused(mulciber_embed_images(c, seeing.encoder, 1, &bad, nullptr, vectors.data(),
                                           nullptr, nullptr)),
             ContainsSubstring("set size to sizeof"));
  CHECK_THAT(refused(mulciber_describe_image_encoder(c, seeing.encoder, nullptr)),
             ContainsSubstring("is NULL"));
  CHECK_THAT(refused(mulciber_trim_image_encoder(c, nullptr, nullptr)),
             ContainsSubstring("encoder: is NULL"));
  mulciber_destroy_image_encoder(nullptr);
}
