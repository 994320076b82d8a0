// Deprecated names of the interface for images: each compiles and is the name that replaced it.
#include <cstddef>
#include <memory>
#include <string>
#include <type_traits>

#include "mulciber/batch_generator.h"
#include "mulciber/error.h"
#include "mulciber/image_encoder.h"
#include "mulciber/mulciber_c_pictures.h"
#include "mulciber/open_model.h"
#include "mulciber/picture.h"
#include "mulciber/picture_reader.h"
#include "mulciber/picture_task.h"
#include "mulciber/prompt_pictures.h"
#include "mulciber/text_generator.h"
#include "tests/catch.h"
#include "tests/support.h"

using namespace mulciber;
using namespace mulciber::tests;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

TEST_CASE("Deprecated types of images are those that replaced them") {
  static_assert(std::is_same_v<Picture, Image>);
  static_assert(std::is_same_v<PictureBatchOptions, ImageBatchOptions>);
  static_assert(std::is_same_v<PictureStatistics, ImageStatistics>);
  static_assert(std::is_same_v<PicturePoolingChoice, ImagePoolingChoice>);
  static_assert(std::is_same_v<PictureEmbedOptions, ImageEmbedOptions>);
  static_assert(std::is_same_v<PictureVector, ImageVector>);
  static_assert(std::is_same_v<PictureAttention, ImageAttention>);
  static_assert(std::is_same_v<PictureLabels, ImageLabels>);
  static_assert(std::is_same_v<PictureMatch, ImageMatch>);
  static_assert(std::is_same_v<PictureReadOptions, ImageReadOptions>);
  static_assert(std::is_same_v<PictureText, ImageText>);
  static_assert(std::is_same_v<PictureReader, ImageTextReader>);
  static_assert(std::is_same_v<PictureTaskOptions, ImageTaskOptions>);
  static_assert(std::is_same_v<PictureTask, ImageTask>);
  static_assert(std::is_same_v<PreparedPicture, PreparedImage>);
  static_assert(std::is_same_v<MulciberPicture, MulciberImage>);
  static_assert(std::is_same_v<MulciberPictureInfo, MulciberImageInfo>);
  static_assert(std::is_same_v<MulciberPictureReport, MulciberImageReport>);
  CHECK(PicturePoolingChoice::kMean == ImagePoolingChoice::kMean);
}

TEST_CASE("Deprecated members of structures for images are those that replaced them") {
  ImageBatchOptions options;
  CHECK(options.batch_images == 16);
  CHECK(options.batch_pictures == 16);
  options.batch_pictures = 4;
  CHECK(options.batch_images == 4);
  ImageStatistics images;
  images.images = 3;
  CHECK(images.pictures == 3);
  GenerateStatistics generated;
  generated.images = 5;
  generated.image_seconds = 0.5;
  CHECK(generated.pictures == 5);
  CHECK(generated.picture_seconds == 0.5);
  BatchStatistics batch;
  batch.images = 7;
  batch.image_seconds = 0.25;
  CHECK(batch.pictures == 7);
  CHECK(batch.picture_seconds == 0.25);
  ChatMessage message = {"user", "What is this?"};
  CHECK(message.images == 0);
  message.pictures = 2;
  CHECK(message.images == 2);
}

TEST_CASE("Deprecated functions for images do what those do that replaced them") {
  CHECK_THROWS_AS(decode_picture({}, "nothing"), ModelError);
  const std::string folder = (data_dir() / "vision_language/llava").string();
  const std::string file = (data_dir() / "vision_language/small.png").string();
  const std::shared_ptr<const OpenModel> model = open_model(folder);
  CHECK(picture_placeholder(*model) == image_placeholder(*model));
  const Image image = read_picture(file);
  CHECK(image.rgb == read_image(file).rgb);
  const std::shared_ptr<const PreparedImage> prepared = prepare_picture(*model, image);
  CHECK(embedded_tokens(*prepared) == embedded_tokens(*prepare_image(*model, image)));

  MulciberTask* task = nullptr;
  const MulciberPicture pixels = {sizeof(pixels), image.width, image.height, image.rgb.data()};
  CHECK(mulciber_begin_picture(nullptr, nullptr, &pixels, nullptr, &task) ==
        MULCIBER_ERROR_SETTING);
  CHECK(mulciber_begin_picture_of_pixels(nullptr, nullptr, nullptr, nullptr, nullptr, &task) ==
        MULCIBER_ERROR_SETTING);
  CHECK(mulciber_describe_picture(nullptr, nullptr, nullptr) == MULCIBER_ERROR_SETTING);
  CHECK(task == nullptr);
}

#pragma GCC diagnostic pop
