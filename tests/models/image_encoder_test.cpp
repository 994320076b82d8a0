// The public classes for images, over the bundled model of digits and the reference models.
#include <cmath>
#include <fstream>
#include <numeric>

#include "checkpoints/safetensors.h"
#include "checkpoints/tensor_values.h"
#include "mulciber/device.h"
#include "mulciber/image_encoder.h"
#include "tests/catch.h"
#include "tests/device.h"
#include "tests/model_error.h"
#include "tests/support.h"

using namespace mulciber;
using namespace mulciber::tests;
using Catch::Matchers::ContainsSubstring;

namespace {

std::shared_ptr<Device> lent_device() {
  return {std::shared_ptr<Device>(), &shared_device()};  // which outlives the test
}

std::string digits_folder() { return (source_dir() / "assets/vit-digits").string(); }

struct LabelledImages {
  std::vector<Image> images;
  std::vector<std::string> labels;
};

/// The digits that training held out: tiles of 8 by 8 pixels, 20 to a row.
LabelledImages held_out_digits() {
  constexpr uint32_t kSide = 8, kAcross = 20;
  const Image sheet = read_image((data_dir() / "digits.png").string());
  std::ifstream labels(data_dir() / "digits.txt");
  LabelledImages result;
  for (std::string label; std::getline(labels, label);) {
    const auto i = static_cast<uint32_t>(result.labels.size());
    Image tile = {kSide, kSide, {}};
    for (uint32_t y = 0; y < kSide; ++y) {
      const auto* line =
          &sheet.rgb[((i / kAcross * kSide + y) * sheet.width + i % kAcross * kSide) * 3];
      tile.rgb.insert(tile.rgb.end(), line, line + kSide * 3);
    }
    result.images.push_back(std::move(tile));
    result.labels.push_back(label);
  }
  return result;
}

Image gradient(uint32_t width, uint32_t height) {
  Image image = {width, height, {}};
  for (uint32_t y = 0; y < height; ++y)
    for (uint32_t x = 0; x < width; ++x)
      image.rgb.insert(image.rgb.end(), {static_cast<uint8_t>(x * 255 / width),
                                         static_cast<uint8_t>(y * 255 / height),
                                         static_cast<uint8_t>((x * 7 + y * 13) % 256)});
  return image;
}

double length_of(std::span<const float> values) {
  return std::sqrt(std::inner_product(values.begin(), values.end(), values.begin(), 0.0));
}

}  // namespace

TEST_CASE("The bundled model knows 97 of a hundred digits that it has not seen") {
  LabelledImages digits = held_out_digits();
  REQUIRE(digits.images.size() == 359);
  // SwiftShader would need more than a minute for all of them.
  const bool slow = shared_device().capabilities().name.find("SwiftShader") != std::string::npos;
  if (slow) {
    digits.images.resize(60);
    digits.labels.resize(60);
  }
  ImageClassifier classifier(lent_device(), digits_folder());
  CHECK(classifier.labels().size() == 10);
  CHECK_FALSE(classifier.several_labels());
  size_t reported = 0;
  ImageBatchOptions options;
  options.batch_images = 64;
  options.progress = [&](size_t done, size_t) { reported = done; };
  const std::vector<ImageLabels> found = classifier.classify(digits.images, options);
  size_t right = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    CHECK(found[i].complete);
    right += classifier.labels()[found[i].best] == digits.labels[i] ? 1 : 0;
    CHECK(std::accumulate(found[i].probabilities.begin(), found[i].probabilities.end(), 0.0) ==
          Approx(1).margin(1e-5));
  }
  INFO(right << " of " << found.size());
  CHECK(right >= digits.images.size() * 97 / 100);
  CHECK(reported == found.size());
  // A batch has 64 images, where a tensor of so many fits a binding.
  const size_t batches = slow ? 1 : 6;
  if (shared_device().capabilities().max_storage_range >= 64 << 20)
    CHECK(classifier.statistics().batches == batches);
  else
    CHECK(classifier.statistics().batches >= batches);
  CHECK(classifier.statistics().peak_device_bytes > 0);
  // An image alone gets the logits that it gets in the batch.
  const ImageLabels alone = classifier.classify(digits.images[5]);
  for (size_t i = 0; i < alone.logits.size(); ++i)
    CHECK(alone.logits[i] == Approx(found[5].logits[i]).margin(1e-4));
}

TEST_CASE("A cancelled call says which images are done") {
  const LabelledImages digits = held_out_digits();
  ImageClassifier classifier(lent_device(), digits_folder());
  std::atomic<bool> cancel{false};
  ImageBatchOptions options;
  options.batch_images = 4;
  options.cancel = &cancel;
  options.progress = [&](size_t done, size_t) { cancel = done >= 8; };
  const auto found = classifier.classify(std::span(digits.images).first(20), options);
  CHECK(std::count_if(found.begin(), found.end(), [](const auto& r) { return r.complete; }) == 8);
}

TEST_CASE("Attention of an image is a share for each patch, and so is the rollout") {
  ImageClassifier classifier(lent_device(), digits_folder());
  const ImageAttention attention = classifier.attention(held_out_digits().images[3]);
  CHECK(attention.seen.width == 32);
  const size_t patches = size_t{attention.rows} * attention.columns;
  CHECK(patches == 64);
  REQUIRE(attention.maps.size() == attention.layers * attention.heads * patches);
  for (size_t map = 0; map < size_t{attention.layers} * attention.heads; ++map) {
    const auto weights = std::span(attention.maps).subspan(map * patches, patches);
    const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
    CHECK(sum > 0);
    CHECK(sum <= 1.0001);  // the rest is the class token's
  }
  const double rolled = std::accumulate(attention.rollout.begin(), attention.rollout.end(), 0.0);
  CHECK(attention.rollout.size() == patches);
  CHECK(rolled > 0);
  CHECK(rolled <= 1.0001);
}

TEST_CASE("Vectors of images are as long as the model is wide, or of length 1") {
  ImageEncoder encoder(lent_device(), digits_folder());
  const std::vector<Image> images = {gradient(40, 30), gradient(9, 70)};
  const std::vector<ImageVector> plain = encoder.embed(images);
  REQUIRE(plain.size() == 2);
  CHECK(plain[0].values.size() == 64);
  const ImageVector unit = encoder.embed(images[1], {.normalize = true});
  CHECK(length_of(unit.values) == Approx(1).margin(1e-5));
  const double length = length_of(plain[1].values);
  for (size_t i = 0; i < unit.values.size(); ++i)
    CHECK(unit.values[i] * length == Approx(plain[1].values[i]).margin(1e-4));
  const ImageVector mean = encoder.embed(images[1], {.pooling = ImagePoolingChoice::kMean});
  CHECK(mean.values != plain[1].values);
  CHECK(encoder.embed(std::span<const Image>{}).empty());
}

TEST_CASE("Hidden states are those that embeddings are pooled from") {
  ImageEncoder encoder(lent_device(), digits_folder());
  const ImageExtents extents = encoder.extents();
  CHECK(extents.width == 64);
  CHECK(extents.state_width == 64);
  CHECK((extents.image_width == 32 && extents.image_height == 32));
  CHECK_FALSE(extents.any_size);
  CHECK(extents.patch == 4);
  CHECK(extents.first_tokens == 1);
  CHECK((extents.layers == 4 && extents.heads == 4));
  CHECK(extents.text_tokens == 0);
  const std::vector<Image> images = {gradient(40, 30), gradient(9, 70), gradient(32, 32)};
  const std::vector<ImageStates> found = encoder.states(images, {.batch_images = 2});
  CHECK(encoder.statistics().batches == 2);
  REQUIRE(found.size() == 3);
  for (size_t i = 0; i < found.size(); ++i) {
    const ImageStates& states = found[i];
    CHECK(states.complete);
    CHECK((states.rows == 8 && states.columns == 8));
    REQUIRE(states.tokens == 65);
    REQUIRE(states.width == 64);
    REQUIRE(states.values.size() == size_t{65} * 64);
    // The class token's state is the embedding, and the mean of the others is the mean embedding.
    const ImageVector of_class = encoder.embed(images[i]);
    const ImageVector mean = encoder.embed(images[i], {.pooling = ImagePoolingChoice::kMean});
    for (size_t column = 0; column < 64; ++column) {
      CHECK(std::abs(states.values[column] - of_class.values[column]) < 1e-4);
      double sum = 0;
      for (size_t token = 1; token < 65; ++token) sum += states.values[token * 64 + column];
      CHECK(std::abs(sum / 64 - mean.values[column]) < 1e-4);
    }
  }
  std::atomic<bool> cancel{true};
  CHECK_FALSE(encoder.states(images[0], {.cancel = &cancel}).complete);
}

TEST_CASE("Images that are none, and models that do something else, are refused") {
  ImageClassifier classifier(lent_device(), digits_folder());
  const auto refusal = [&](const Image& image) {
    return model_error([&] { (void)classifier.classify(image); }).value_or("");
  };
  CHECK_THAT(refusal({}), ContainsSubstring("0 by 0 pixels"));
  CHECK_THAT(refusal({8, 8, std::vector<uint8_t>(10)}), ContainsSubstring("has 10 bytes"));
  const auto matching = model_error([&] { ImageTextMatcher(lent_device(), digits_folder()); });
  CHECK_THAT(matching.value_or(""), ContainsSubstring("matches images with texts") &&
                                        ContainsSubstring("mulciber classify"));
  const auto texts =
      model_error([&] { ImageEncoder(lent_device(), (data_dir() / "roberta_cls").string()); });
  CHECK_THAT(texts.value_or(""), ContainsSubstring("turns images into vectors"));
}

TEST_CASE("CLIP and SigLIP say which text fits, with what the reference gives for both") {
  if (fixtures_dir().empty()) MULCIBER_SKIP("the reference models are not here");
  // CLIP's fixture has no preprocessor_config.json; SigLIP's has its own.
  ImageTextMatcher matcher(lent_device(), (fixtures_dir() / "models2/siglip").string());
  CHECK_FALSE(matcher.probabilities_add_up());
  const std::vector<std::string> texts = {"The red hammer strikes the anvil.", "a"};
  const std::vector<Image> images = {gradient(32, 32), gradient(100, 50), gradient(10, 10)};
  const std::vector<ImageMatch> found = matcher.match(images, texts);
  REQUIRE(found.size() == 3);
  for (const ImageMatch& match : found) {
    REQUIRE(match.probabilities.size() == 2);
    CHECK(match.complete);
    for (size_t i = 0; i < 2; ++i)
      CHECK(match.probabilities[i] == Approx(1 / (1 + std::exp(-match.logits[i]))));
    CHECK(match.logits[match.best] >= match.logits[1 - match.best]);
  }
  const SafetensorsFile expected(fixtures_dir() / "models2/siglip/expected.safetensors");
  const CheckpointTensor& wanted = *expected.find("joint/text_embeds");
  const std::vector<float> values = read_floats(wanted, 0, wanted.elements());
  const std::vector<std::vector<float>> vectors = matcher.embed_texts(texts);
  REQUIRE(vectors.size() == 2);
  for (size_t i = 0; i < 2; ++i) {
    CHECK(length_of(vectors[i]) == Approx(1).margin(1e-5));
    for (size_t k = 0; k < vectors[i].size(); ++k)
      CHECK(vectors[i][k] == Approx(values[i * vectors[i].size() + k]).margin(1e-4));
  }
  // The embeddings are those whose cosines match() scales.
  CHECK(matcher.extents().width == vectors[0].size());
  CHECK(matcher.extents().text_tokens == 24);
  const std::vector<ImageVector> seen = matcher.embed_images(images);
  REQUIRE(seen.size() == 3);
  std::vector<double> slopes;
  for (size_t i = 0; i < 3; ++i) {
    REQUIRE(seen[i].complete);
    CHECK(length_of(seen[i].values) == Approx(1).margin(1e-5));
    const auto cosine = [&](size_t text) {
      return std::inner_product(seen[i].values.begin(), seen[i].values.end(), vectors[text].begin(),
                                0.0);
    };
    slopes.push_back((found[i].logits[0] - found[i].logits[1]) / (cosine(0) - cosine(1)));
    CHECK(slopes[i] == Approx(slopes[0]).epsilon(1e-3));
  }
  CHECK_THAT(model_error([&] { (void)matcher.match(images, {}); }).value_or(""),
             ContainsSubstring("texts: are none"));
  const std::vector<std::string> endless = {std::string(4000, 'x')};
  CHECK_THAT(model_error([&] { (void)matcher.match(images, endless); }).value_or(""),
             ContainsSubstring("the model takes 1 to 24"));
}
