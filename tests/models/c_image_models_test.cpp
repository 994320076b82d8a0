// Image files, classifiers, readers and matchers of images in C: their results are those of C++.
#include <algorithm>
#include <string>
#include <vector>

#include "capi/handles.h"
#include "mulciber/c/image_classifier.h"
#include "mulciber/c/image_text_matcher.h"
#include "mulciber/c/image_text_reader.h"
#include "mulciber/image_encoder.h"
#include "mulciber/image_text_reader.h"
#include "tests/c_session.h"
#include "tests/catch.h"
#include "tests/model_error.h"
#include "tests/support.h"

using namespace mulciber;
using namespace mulciber::tests;
using Catch::Matchers::ContainsSubstring;

namespace {

std::string strings_folder() { return (source_dir() / "assets/digit-strings").string(); }

/// Three images, each of its own colours.
struct StripedImages {
  std::vector<Image> images;
  std::vector<MulciberImage> in_c;

  StripedImages() {
    for (const uint32_t width : {8u, 20u, 33u}) {
      Image image = {width, 12, std::vector<uint8_t>(size_t{width} * 12 * 3)};
      for (size_t i = 0; i < image.rgb.size(); ++i) image.rgb[i] = static_cast<uint8_t>(i * width);
      images.push_back(std::move(image));
    }
    for (const Image& image : images)
      in_c.push_back({sizeof(MulciberImage), image.width, image.height, image.rgb.data(), nullptr});
  }
};

bool equal_floats(const std::vector<float>& expected, const float* found) {
  return std::equal(expected.begin(), expected.end(), found);
}

std::string refused_model(const Session& session, MulciberStatus status, MulciberStatus expected) {
  CHECK(status == expected);
  return session.context.message();
}

}  // namespace

TEST_CASE("An image file in C is the image that C++ reads") {
  const Context context;
  MulciberContext* c = context.handle;
  const std::string path = strings_folder() + "/string.png";
  const Image expected = read_image(path);
  const std::string bytes = read_file(path);
  for (const bool in_memory : {false, true}) {
    MulciberImage image = {sizeof(image)};
    MulciberResult* result = nullptr;
    REQUIRE((in_memory
                 ? mulciber_decode_image(c, bytes.data(), bytes.size(), "line", &result, &image)
                 : mulciber_read_image(c, path.c_str(), &result, &image)) == MULCIBER_OK);
    CHECK(image.size == sizeof(image));
    REQUIRE(image.width == expected.width);
    REQUIRE(image.height == expected.height);
    CHECK(std::equal(expected.rgb.begin(), expected.rgb.end(), image.rgb));
    CHECK(image.pixels == nullptr);
    mulciber_destroy_result(result);
  }
  MulciberImage image = {sizeof(image), 7, 7, nullptr, nullptr};
  auto* result = reinterpret_cast<MulciberResult*>(&image);
  CHECK(mulciber_decode_image(c, bytes.data(), 20, "line", &result, &image) ==
        MULCIBER_ERROR_MODEL);
  CHECK_THAT(context.message(), ContainsSubstring("line"));
  CHECK((result == nullptr && image.width == 0));
  CHECK(mulciber_read_image(c, "/no/such/image.png", &result, &image) == MULCIBER_ERROR_MODEL);
  CHECK_THAT(context.message(), ContainsSubstring("/no/such/image.png"));
  const auto refused = [&](MulciberStatus status) {
    CHECK(status == MULCIBER_ERROR_SETTING);
    return context.message();
  };
  CHECK_THAT(refused(mulciber_read_image(c, nullptr, &result, &image)),
             ContainsSubstring("path: is NULL"));
  CHECK_THAT(refused(mulciber_read_image(c, path.c_str(), nullptr, &image)),
             ContainsSubstring("result: is NULL"));
  CHECK_THAT(refused(mulciber_read_image(c, path.c_str(), &result, nullptr)),
             ContainsSubstring("MulciberImage: is NULL"));
  CHECK_THAT(refused(mulciber_decode_image(c, nullptr, 3, nullptr, &result, &image)),
             ContainsSubstring("bytes: is NULL"));
}

TEST_CASE("Labels of images in C are those in C++") {
  const Session session(digits());
  MulciberContext* c = session.c;
  MulciberImageClassifier* classifier = nullptr;
  REQUIRE(mulciber_load_image_classifier(c, session.device, session.model, nullptr, &classifier) ==
          MULCIBER_OK);
  ImageClassifier twin(session.device->device, digits());
  MulciberImageClassifierReport report = {sizeof(report)};
  REQUIRE(mulciber_describe_image_classifier(c, classifier, &report) == MULCIBER_OK);
  CHECK_FALSE(report.several_labels);
  CHECK(std::vector<std::string>(report.labels, report.labels + report.label_count) ==
        twin.labels());
  CHECK((report.image_width == 32 && report.image_height == 32));
  CHECK((report.layers == 4 && report.heads == 4));

  const StripedImages striped;
  std::vector<uint32_t> told;
  MulciberImageBatchInfo info = {sizeof(info)};
  info.batch_images = 2;
  info.user = &told;
  info.on_progress = [](void* user, uint32_t done, uint32_t total) {
    CHECK(total == 3);
    static_cast<std::vector<uint32_t>*>(user)->push_back(done);
  };
  MulciberResult *result = nullptr, *of_maps = nullptr;
  const MulciberImageLabels* found = nullptr;
  REQUIRE(mulciber_classify_images(c, classifier, 3, striped.in_c.data(), &info, &result, &found) ==
          MULCIBER_OK);
  CHECK(told == std::vector<uint32_t>{2, 3});
  const MulciberImageAttention* attention = nullptr;
  REQUIRE(mulciber_image_classifier_attention(c, classifier, &striped.in_c[1], &of_maps,
                                              &attention) == MULCIBER_OK);
  MulciberImageStatistics statistics = {sizeof(statistics)};
  REQUIRE(mulciber_image_classifier_statistics(c, classifier, &statistics) == MULCIBER_OK);
  CHECK((statistics.images == 3 && statistics.batches == 2));
  uint64_t freed = 0;
  CHECK(mulciber_trim_image_classifier(c, classifier, &freed) == MULCIBER_OK);
  CHECK(freed > 0);
  mulciber_destroy_image_classifier(classifier);  // the results stay

  const std::vector<ImageLabels> expected = twin.classify(striped.images, {.batch_images = 2});
  for (size_t i = 0; i < 3; ++i) {
    CHECK(found[i].size == sizeof(found[i]));
    CHECK(found[i].complete);
    CHECK(found[i].best == expected[i].best);
    REQUIRE(found[i].label_count == 10);
    CHECK(equal_floats(expected[i].probabilities, found[i].probabilities));
    CHECK(equal_floats(expected[i].logits, found[i].logits));
  }
  const ImageAttention maps = twin.attention(striped.images[1]);
  REQUIRE(attention->layers * attention->heads == maps.layers * maps.heads);
  REQUIRE(attention->rows * attention->columns == maps.rows * maps.columns);
  CHECK(equal_floats(maps.maps, attention->maps));
  CHECK(equal_floats(maps.rollout, attention->rollout));
  CHECK(std::equal(maps.seen.rgb.begin(), maps.seen.rgb.end(), attention->seen->rgb));
  mulciber_destroy_result(result);
  mulciber_destroy_result(of_maps);
}

TEST_CASE("Texts of images in C are those in C++") {
  const Session session(strings_folder());
  MulciberContext* c = session.c;
  MulciberImageTextReader* reader = nullptr;
  REQUIRE(mulciber_load_image_text_reader(c, session.device, session.model, nullptr, &reader) ==
          MULCIBER_OK);
  ImageTextReader twin(session.device->device, strings_folder());
  const std::vector<Image> images = {read_image(strings_folder() + "/string.png"),
                                     StripedImages().images[2]};
  std::vector<MulciberImage> in_c;
  for (const Image& image : images)
    in_c.push_back({sizeof(MulciberImage), image.width, image.height, image.rgb.data(), nullptr});
  MulciberReadTextInfo info = {sizeof(info)};
  for (const bool maps : {false, true}) {
    info.attention = maps;
    info.beams = maps ? 3 : 0;
    info.max_tokens = maps ? 4 : 0;
    MulciberResult* result = nullptr;
    const MulciberImageText* found = nullptr;
    REQUIRE(mulciber_read_image_texts(c, reader, 2, in_c.data(), &info, &result, &found) ==
            MULCIBER_OK);
    const std::vector<ImageText> expected = twin.read(
        images, {.beams = maps ? 3u : 1u, .max_tokens = info.max_tokens, .attention = maps});
    for (size_t i = 0; i < 2; ++i) {
      CHECK(found[i].complete);
      CHECK(found[i].text == expected[i].text);
      CHECK(found[i].log_probability == expected[i].log_probability);
      REQUIRE(found[i].id_count == expected[i].ids.size());
      CHECK(std::equal(expected[i].ids.begin(), expected[i].ids.end(), found[i].ids));
      CHECK(std::vector<std::string>(found[i].tokens, found[i].tokens + found[i].id_count) ==
            expected[i].tokens);
      CHECK(found[i].layers == expected[i].layers);
      CHECK((found[i].seen != nullptr) == maps);
      if (!maps) continue;
      CHECK(equal_floats(expected[i].maps, found[i].maps));
      CHECK((found[i].rows == expected[i].rows && found[i].columns == expected[i].columns));
      CHECK(found[i].seen->width == expected[i].seen.width);
    }
    if (!maps) CHECK(std::string(found[0].text) == "31977");
    mulciber_destroy_result(result);
  }
  MulciberImageStatistics statistics = {sizeof(statistics)};
  REQUIRE(mulciber_image_text_reader_statistics(c, reader, &statistics) == MULCIBER_OK);
  CHECK(statistics.images == 2);
  CHECK(mulciber_trim_image_text_reader(c, reader, nullptr) == MULCIBER_OK);

  MulciberCancel* cancel = nullptr;
  REQUIRE(mulciber_create_cancel(c, &cancel) == MULCIBER_OK);
  mulciber_request_cancel(cancel);
  info.cancel = cancel;
  MulciberResult* result = nullptr;
  const MulciberImageText* found = nullptr;
  REQUIRE(mulciber_read_image_texts(c, reader, 2, in_c.data(), &info, &result, &found) ==
          MULCIBER_OK);
  CHECK_FALSE(found[0].complete);
  CHECK(std::string(found[0].text).empty());
  mulciber_destroy_result(result);
  mulciber_destroy_cancel(cancel);
  info.cancel = nullptr;
  info.beams = 33;
  CHECK_THAT(
      refused_model(session,
                    mulciber_read_image_texts(c, reader, 2, in_c.data(), &info, &result, &found),
                    MULCIBER_ERROR_MODEL),
      ContainsSubstring("not 1 to 32"));
  CHECK((result == nullptr && found == nullptr));
  mulciber_destroy_image_text_reader(reader);
}

TEST_CASE("Matches of images and texts in C are those in C++") {
  if (fixtures_dir().empty()) MULCIBER_SKIP("no reference models (set MULCIBER_FIXTURES)");
  const std::string folder = (fixtures_dir() / "models2/siglip").string();
  const Session session(folder);
  MulciberContext* c = session.c;
  MulciberImageTextMatcher* matcher = nullptr;
  REQUIRE(mulciber_load_image_text_matcher(c, session.device, session.model, nullptr, &matcher) ==
          MULCIBER_OK);
  ImageTextMatcher twin(session.device->device, folder);
  MulciberImageTextMatcherReport report = {sizeof(report)};
  REQUIRE(mulciber_describe_image_text_matcher(c, matcher, &report) == MULCIBER_OK);
  CHECK(report.vector_width == 48);
  CHECK(report.text_tokens == 24);
  CHECK_FALSE(report.probabilities_add_up);
  CHECK((report.image_width == 32 && report.image_height == 32));
  const StripedImages striped;
  const std::vector<std::string> texts = {"The red hammer strikes the anvil.", "a"};
  const char* const in_c[] = {texts[0].c_str(), texts[1].c_str(), nullptr};
  MulciberResult* result = nullptr;
  const MulciberImageMatch* found = nullptr;
  REQUIRE(mulciber_match_images(c, matcher, 3, striped.in_c.data(), 2, in_c, nullptr, &result,
                                &found) == MULCIBER_OK);
  const std::vector<ImageMatch> expected = twin.match(striped.images, texts);
  for (size_t i = 0; i < 3; ++i) {
    CHECK(found[i].complete);
    CHECK(found[i].best == expected[i].best);
    REQUIRE(found[i].text_count == 2);
    CHECK(equal_floats(expected[i].probabilities, found[i].probabilities));
    CHECK(equal_floats(expected[i].logits, found[i].logits));
  }
  mulciber_destroy_result(result);
  std::vector<float> vectors(3 * 48);
  REQUIRE(mulciber_embed_matched_images(c, matcher, 3, striped.in_c.data(), nullptr,
                                        vectors.data()) == MULCIBER_OK);
  const std::vector<ImageVector> images = twin.embed_images(striped.images);
  for (size_t i = 0; i < 3; ++i) CHECK(equal_floats(images[i].values, &vectors[i * 48]));
  REQUIRE(mulciber_embed_matched_texts(c, matcher, 2, in_c, vectors.data()) == MULCIBER_OK);
  const std::vector<std::vector<float>> words = twin.embed_texts(texts);
  for (size_t i = 0; i < 2; ++i) CHECK(equal_floats(words[i], &vectors[i * 48]));
  MulciberImageStatistics statistics = {sizeof(statistics)};
  CHECK(mulciber_image_text_matcher_statistics(c, matcher, &statistics) == MULCIBER_OK);
  CHECK(mulciber_trim_image_text_matcher(c, matcher, nullptr) == MULCIBER_OK);

  const auto refused = [&](uint32_t count, const char* const* given,
                           MulciberStatus expected_status) {
    return refused_model(session,
                         mulciber_match_images(c, matcher, 1, striped.in_c.data(), count, given,
                                               nullptr, &result, &found),
                         expected_status);
  };
  CHECK_THAT(refused(0, nullptr, MULCIBER_ERROR_MODEL), ContainsSubstring("texts: are none"));
  CHECK_THAT(refused(1, nullptr, MULCIBER_ERROR_SETTING), ContainsSubstring("texts: is NULL"));
  CHECK_THAT(refused(3, in_c, MULCIBER_ERROR_SETTING), ContainsSubstring("texts: is NULL"));
  CHECK_THAT(refused_model(session, mulciber_embed_matched_texts(c, matcher, 1, in_c, nullptr),
                           MULCIBER_ERROR_SETTING),
             ContainsSubstring("vectors: is NULL"));
  mulciber_destroy_image_text_matcher(matcher);
}

TEST_CASE("Models that do something else are refused in C with what they do") {
  const Session session(digits());
  MulciberContext* c = session.c;
  MulciberImageTextMatcher* matcher = nullptr;
  MulciberImageTextReader* reader = nullptr;
  CHECK_THAT(refused_model(session,
                           mulciber_load_image_text_matcher(c, session.device, session.model,
                                                            nullptr, &matcher),
                           MULCIBER_ERROR_MODEL),
             ContainsSubstring("matches images with texts"));
  CHECK_THAT(refused_model(session,
                           mulciber_load_image_text_reader(c, session.device, session.model,
                                                           nullptr, &reader),
                           MULCIBER_ERROR_MODEL),
             ContainsSubstring("reads the text in images"));
  CHECK((matcher == nullptr && reader == nullptr));
  MulciberImageClassifier* classifier = nullptr;
  const Session texts(small_encoder());
  CHECK_THAT(refused_model(texts,
                           mulciber_load_image_classifier(texts.c, texts.device, texts.model,
                                                          nullptr, &classifier),
                           MULCIBER_ERROR_MODEL),
             ContainsSubstring("labels images"));
  const auto refused = [&](MulciberStatus status) {
    return refused_model(session, status, MULCIBER_ERROR_SETTING);
  };
  CHECK_THAT(
      refused(mulciber_load_image_classifier(c, nullptr, session.model, nullptr, &classifier)),
      ContainsSubstring("device: is NULL"));
  CHECK_THAT(
      refused(mulciber_load_image_classifier(c, session.device, nullptr, nullptr, &classifier)),
      ContainsSubstring("model: is NULL"));
  MulciberResult* result = nullptr;
  const MulciberImageLabels* labels = nullptr;
  const MulciberImageText* read = nullptr;
  CHECK_THAT(refused(mulciber_classify_images(c, nullptr, 0, nullptr, nullptr, &result, &labels)),
             ContainsSubstring("classifier: is NULL"));
  CHECK_THAT(refused(mulciber_classify_images(c, nullptr, 0, nullptr, nullptr, nullptr, &labels)),
             ContainsSubstring("result: is NULL"));
  CHECK_THAT(refused(mulciber_read_image_texts(c, nullptr, 0, nullptr, nullptr, &result, &read)),
             ContainsSubstring("reader: is NULL"));
  for (const MulciberStatus status :
       {mulciber_trim_image_classifier(c, nullptr, nullptr),
        mulciber_trim_image_text_matcher(c, nullptr, nullptr),
        mulciber_trim_image_text_reader(c, nullptr, nullptr),
        mulciber_image_classifier_attention(c, nullptr, nullptr, nullptr, nullptr),
        mulciber_describe_image_classifier(c, nullptr, nullptr),
        mulciber_describe_image_text_matcher(c, nullptr, nullptr),
        mulciber_image_text_reader_statistics(c, nullptr, nullptr)})
    CHECK(status == MULCIBER_ERROR_SETTING);
  mulciber_destroy_image_classifier(nullptr);
  mulciber_destroy_image_text_matcher(nullptr);
  mulciber_destroy_image_text_reader(nullptr);
}

TEST_CASE("Image models that were loaded in parts in C compute the bits of others") {
  const Session session(digits());
  MulciberContext* c = session.c;
  const StripedImages striped;
  const auto loaded = [&] {
    MulciberLoader* loader = nullptr;
    REQUIRE(mulciber_begin_load(c, session.device, session.model, nullptr, &loader) == MULCIBER_OK);
    MulciberLoadProgress progress = {sizeof(progress)};
    while (!progress.complete)
      REQUIRE(mulciber_step_load(c, loader, 100'000, &progress) == MULCIBER_OK);
    return loader;
  };
  MulciberLoader* loader = loaded();
  MulciberImageTextReader* reader = nullptr;
  MulciberTranscriber* transcriber = nullptr;
  MulciberImageTextMatcher* matcher = nullptr;
  CHECK(mulciber_finish_image_text_reader(c, loader, &reader) == MULCIBER_ERROR_MODEL);
  CHECK(mulciber_finish_transcriber(c, loader, &transcriber) == MULCIBER_ERROR_MODEL);
  CHECK(mulciber_finish_image_text_matcher(c, loader, &matcher) == MULCIBER_ERROR_MODEL);
  MulciberImageClassifier *classifier = nullptr, *whole = nullptr;
  REQUIRE(mulciber_finish_image_classifier(c, loader, &classifier) == MULCIBER_OK);
  mulciber_destroy_loader(loader);
  REQUIRE(mulciber_load_image_classifier(c, session.device, session.model, nullptr, &whole) ==
          MULCIBER_OK);
  MulciberResult *result = nullptr, *same = nullptr;
  const MulciberImageLabels *found = nullptr, *expected = nullptr;
  REQUIRE(mulciber_classify_images(c, classifier, 1, striped.in_c.data(), nullptr, &result,
                                   &found) == MULCIBER_OK);
  REQUIRE(mulciber_classify_images(c, whole, 1, striped.in_c.data(), nullptr, &same, &expected) ==
          MULCIBER_OK);
  CHECK(std::equal(expected->logits, expected->logits + 10, found->logits));
  mulciber_destroy_result(result);
  mulciber_destroy_result(same);
  mulciber_destroy_image_classifier(classifier);
  mulciber_destroy_image_classifier(whole);
  loader = loaded();
  MulciberImageEncoder *encoder = nullptr, *second = nullptr;
  REQUIRE(mulciber_finish_image_encoder(c, loader, &encoder) == MULCIBER_OK);
  CHECK(mulciber_finish_image_encoder(c, loader, &second) == MULCIBER_ERROR_SETTING);
  CHECK(second == nullptr);
  mulciber_destroy_image_encoder(encoder);
  mulciber_destroy_loader(loader);
}
