// Models that read images: float64 values, batches, and refusals.
#include <cmath>
#include <nlohmann/json.hpp>

#include "models/families/vision_family.h"
#include "models/loading/open_files.h"
#include "models/loading/verify.h"
#include "models/vision/vision_model.h"
#include "tests/catch.h"
#include "tests/device.h"
#include "tests/model_error.h"
#include "tests/support.h"

using namespace mulciber;
using namespace mulciber::tests;
using Catch::Matchers::ContainsSubstring;

namespace {

struct LoadedVision {
  OpenModel opened;
  std::unique_ptr<Model> model;

  explicit LoadedVision(const std::filesystem::path& path, const ModelOptions& options = {})
      : opened(open_files(path)), model(load_model(shared_device(), opened, options)) {}
  SeeingModel& seeing() { return *model->sees(); }
};

/// Random pixels.
std::vector<std::vector<uint32_t>> images_of(size_t count, ImageSize size) {
  std::vector<std::vector<uint32_t>> images;
  uint32_t number = 12345;
  for (size_t i = 0; i < count; ++i) {
    images.emplace_back(uint64_t{size.height} * size.width);
    for (uint32_t& word : images.back()) {
      number = number * 1664525 + 1013904223;
      word = number >> 8;
    }
  }
  return images;
}

ImageNormalization half_and_half() {
  ImageNormalization normalization;
  normalization.scale.fill(1 / 127.5f);
  normalization.shift.fill(-1);
  return normalization;
}

double largest_gap(std::span<const float> a, std::span<const float> b) {
  REQUIRE(a.size() == b.size());
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i)
    largest = std::max(largest, std::abs(double{a[i]} - double{b[i]}));
  return largest;
}

void check_values(const std::filesystem::path& folder, size_t tensors) {
  const bool half = GENERATE(false, true);
  INFO(folder.string() << (half ? ", activations in 16 bits" : ""));
  LoadedVision loaded(folder, {.activations = half ? DataType::kF16 : DataType::kF32});
  const VerifyReport report = verify(*loaded.model, folder / "expected.safetensors");
  for (const VerifyResult& result : report.results) {
    INFO(result.case_name << " " << result.tensor << ": " << result.error << " above "
                          << result.tolerance << " " << result.detail);
    CHECK(result.status == VerifyResult::Status::kPass);
  }
  CHECK(report.results.size() == tensors);
}

}  // namespace

TEST_CASE("Bundled classifiers of images give the values of float64") {
  const std::string name = GENERATE("deit", "dinov2");
  check_values(data_dir() / name, 2);
}

TEST_CASE("A model that reads images gives the values of float64") {
  check_values(data_dir() / "image_text_reader", 3);
}

TEST_CASE("The reference vision models give the values of float64") {
  if (fixtures_dir().empty()) MULCIBER_SKIP("the reference models are not here");
  const auto& [folder, tensors] =
      GENERATE(std::pair("models/vit", size_t{4}), std::pair("models2/dinov2", size_t{10}),
               std::pair("models/clip", size_t{8}), std::pair("models2/siglip", size_t{8}));
  check_values(fixtures_dir() / folder, tensors);
}

TEST_CASE("Bytes give what planes of normalized pixels give, in batches as alone") {
  if (fixtures_dir().empty()) MULCIBER_SKIP("the reference models are not here");
  LoadedVision loaded(fixtures_dir() / "models/vit");
  SeeingModel& model = loaded.seeing();
  const ImageSize size = {32, 32};
  const auto images = images_of(3, size);
  const ImageRequest request = {.pixels = images,
                                .size = size,
                                .normalization = half_and_half(),
                                .output = ImageOutput::kLogits};
  const EncoderResult together = model.see(request);
  REQUIRE(together.values.size() == 3);
  NamedArray planes = {{3, 3, 32, 32}, {}};
  for (const auto& image : images)
    for (uint32_t channel = 0; channel < 3; ++channel)
      for (const uint32_t word : image)
        planes.values.push_back((word >> 8 * channel & 255) / 127.5 - 1);
  const std::vector<std::string> wanted = {"logits"};
  const NamedArrays forward = loaded.model->forward({{"pixel_values", planes}}, wanted);
  const std::vector<double>& logits = forward.at("logits").values;
  for (size_t i = 0; i < 3; ++i) {
    ImageRequest alone = request;
    alone.pixels = std::span(images).subspan(i, 1);
    CHECK(largest_gap(model.see(alone).values.front(), together.values[i]) < 1e-5);
    const std::vector<float> expected(logits.begin() + static_cast<std::ptrdiff_t>(10 * i),
                                      logits.begin() + static_cast<std::ptrdiff_t>(10 * i + 10));
    CHECK(largest_gap(expected, together.values[i]) < 1e-5);
  }
}

TEST_CASE("Images of a size that a model does not take are refused") {
  if (fixtures_dir().empty()) MULCIBER_SKIP("the reference models are not here");
  const auto message = [](const char* folder, ImageSize size) {
    LoadedVision loaded(fixtures_dir() / folder);
    return model_error([&] { (void)loaded.seeing().batch_limit(size); }).value_or("");
  };
  CHECK_THAT(message("models/vit", {32, 40}),
             ContainsSubstring("cannot take images of 40 by 32 pixels; it takes 32 by 32"));
  CHECK(message("models2/dinov2", {14, 70}).empty());
  CHECK_THAT(message("models2/dinov2", {28, 27}), ContainsSubstring("a multiple of 7 each way"));
  CHECK_THAT(message("models2/dinov2", {0, 28}), ContainsSubstring("28 by 0"));
}

TEST_CASE("Positions are resized by their four neighbours each way") {
  // The three columns are x, y, and a constant.
  std::vector<float> grid;
  for (int y = 0; y < 6; ++y)
    for (int x = 0; x < 6; ++x)
      grid.insert(grid.end(), {static_cast<float>(x), static_cast<float>(10 * y), 7});
  CHECK(resized_positions(grid, 3, {6, 6}, {6, 6}) == grid);
  const ImageSize to = {9, 12};
  const std::vector<float> other = resized_positions(grid, 3, {6, 6}, to);
  REQUIRE(other.size() == 9 * 12 * 3);
  const auto at = [&](size_t y, size_t x, size_t column) {
    return other[(y * to.width + x) * 3 + column];
  };
  for (size_t y = 0; y < to.height; ++y) {
    for (size_t x = 0; x < to.width; ++x) {
      // Left mirrors right, top mirrors bottom.
      CHECK(at(y, x, 0) + at(y, to.width - 1 - x, 0) == Approx(5));
      CHECK(at(y, x, 1) + at(to.height - 1 - y, x, 1) == Approx(50));
      CHECK(at(y, x, 2) == Approx(7));
    }
  }
  // The sample is a quarter of the way from 2 to 3: the weights are -0.10546875, 0.87890625,
  // 0.26171875 and -0.03515625 by Keys' kernel with a = -3/4.
  CHECK(at(0, 5, 0) == Approx(-0.10546875 + 2 * 0.87890625 + 3 * 0.26171875 - 4 * 0.03515625));
}

TEST_CASE("A configuration of a vision model is checked before anything is loaded") {
  const auto refusal = [](const VisionFamily& family, const Json& config) {
    return model_error([&] { family.read(ConfigReader(config, "config.json")); })
        .value_or("no error");
  };
  const Json good = {{"hidden_size", 64},      {"num_attention_heads", 4},
                     {"num_hidden_layers", 2}, {"intermediate_size", 128},
                     {"image_size", 32},       {"patch_size", 4}};
  const auto with = [&](const char* key, const Json& value) {
    Json changed = good;
    changed[key] = value;
    return changed;
  };
  CHECK(refusal(kVit, good) == "no error");
  CHECK(kVit.read(ConfigReader(good, "config.json")).tower.tokens() == 65);
  CHECK(kDeit.read(ConfigReader(good, "config.json")).tower.tokens() == 66);
  CHECK(kVit.read(ConfigReader(with("image_size", {36, 24}), "")).tower.tokens() == 55);
  // Pixels beyond the last whole patch are not read.
  CHECK(kVit.read(ConfigReader(with("image_size", 35), "")).tower.tokens() == 65);
  CHECK_THAT(refusal(kVit, with("num_attention_heads", 5)), ContainsSubstring("does not divide"));
  CHECK_THAT(refusal(kVit, with("patch_size", 33)), ContainsSubstring("32 by 32 pixels"));
  CHECK_THAT(refusal(kVit, with("patch_size", 0)), ContainsSubstring("patch_size"));
  CHECK_THAT(refusal(kVit, with("image_size", 100000)), ContainsSubstring("image_size"));
  CHECK_THAT(refusal(kVit, with("image_size", {32, -1})), ContainsSubstring("image_size"));
  CHECK_THAT(refusal(kVit, with("num_channels", 5)), ContainsSubstring("num_channels"));
  Json fine = with("patch_size", 1);
  fine["image_size"] = 16384;
  CHECK_THAT(refusal(kDinov2, fine), ContainsSubstring("patches of an image"));
  CHECK_THAT(refusal(kClip, {{"vision_config", 5}}), ContainsSubstring("vision_config"));
  CHECK_THAT(refusal(kClip, {{"vision_config", {{"patch_size", "a"}}}}),
             ContainsSubstring("vision_config: 'patch_size'"));
}
