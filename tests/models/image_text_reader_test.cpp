// Reading strings of digits with the bundled model: correct answers, maps that follow the digits,
// and what cannot be read.
#include <algorithm>
#include <fstream>
#include <numeric>
#include <set>

#include "mulciber/device.h"
#include "mulciber/image_text_reader.h"
#include "tests/catch.h"
#include "tests/device.h"
#include "tests/model_error.h"
#include "tests/support.h"

using namespace mulciber;
using namespace mulciber::tests;
using Catch::Matchers::ContainsSubstring;

namespace {

ImageTextReader digit_reader() {
  return {std::shared_ptr<Device>(std::shared_ptr<Device>(), &shared_device()),
          (source_dir() / "assets/digit-strings").string()};
}

Image sample() { return read_image((source_dir() / "assets/digit-strings/string.png").string()); }

struct Strings {
  std::vector<Image> images;
  std::vector<std::string> texts;
};

/// Strings of digits that training held out: each is a row of 8 pixels' height, digits from the
/// left.
Strings held_out_strings() {
  constexpr uint32_t kSide = 8;
  const Image sheet = read_image((data_dir() / "digit_strings.png").string());
  std::ifstream texts(data_dir() / "digit_strings.txt");
  Strings result;
  for (std::string text; std::getline(texts, text);) {
    const auto row = static_cast<uint32_t>(result.texts.size());
    Image image = {static_cast<uint32_t>(text.size()) * kSide, kSide, {}};
    for (uint32_t y = 0; y < kSide; ++y) {
      const auto* line = &sheet.rgb[(row * kSide + y) * size_t{sheet.width} * 3];
      image.rgb.insert(image.rgb.end(), line, line + image.width * size_t{3});
    }
    result.images.push_back(std::move(image));
    result.texts.push_back(text);
  }
  return result;
}

}  // namespace

TEST_CASE("The bundled reader reads nine of ten strings of digits that it has not seen") {
  const Strings strings = held_out_strings();
  REQUIRE(strings.texts.size() == 60);
  ImageTextReader reader = digit_reader();
  for (const uint32_t beams : {1u, 3u}) {
    const std::vector<ImageText> found = reader.read(strings.images, {.beams = beams});
    size_t right = 0;
    for (size_t i = 0; i < found.size(); ++i) {
      CHECK(found[i].complete);
      CHECK(found[i].ids.size() == found[i].text.size());
      right += found[i].text == strings.texts[i] ? 1 : 0;
    }
    INFO(right << " of " << found.size() << " with " << beams << " beams");
    CHECK(right >= 54);
  }
  CHECK(reader.statistics().images == 60);
}

TEST_CASE("Each token of the sample is read where its digit stands") {
  ImageTextReader reader = digit_reader();
  const ImageText found = reader.read(sample(), {.attention = true});
  CHECK(found.text == "31977");
  REQUIRE(found.rows * found.columns == 64);
  const size_t tokens = found.ids.size(), patches = 64;
  REQUIRE(found.maps.size() == size_t{found.layers} * found.heads * tokens * patches);
  double before = -1;
  for (size_t token = 0; token < tokens; ++token) {
    // The mean column of all heads' weights in the last layer.
    double sum = 0, columns = 0;
    for (uint32_t head = 0; head < found.heads; ++head) {
      const size_t map = ((found.layers - 1) * size_t{found.heads} + head) * tokens + token;
      for (size_t patch = 0; patch < patches; ++patch) {
        const double weight = found.maps[map * patches + patch];
        sum += weight;
        columns += weight * static_cast<double>(patch % found.columns);
      }
    }
    CHECK(sum > 0);
    CHECK(sum <= found.heads * 1.0001);
    CHECK(columns / sum > before);  // from left to right
    before = columns / sum;
  }
}

TEST_CASE("What generation_config.json asks for is kept") {
  const auto read_with = [](const std::string& rules, uint32_t beams) {
    const TemporaryFolder folder;
    for (const auto& file :
         std::filesystem::directory_iterator(source_dir() / "assets/digit-strings"))
      std::filesystem::copy(file.path(), folder.path() / file.path().filename());
    write_file(folder.path() / "generation_config.json", rules);
    ImageTextReader reader({std::shared_ptr<Device>(), &shared_device()}, folder.path().string());
    return reader.read(sample(), {.beams = beams}).text;
  };
  for (const uint32_t beams : {1u, 3u}) {
    INFO(beams << " beams");
    CHECK(read_with("{}", beams) == "31977");
    CHECK(read_with(R"({"eos_token_id": [2, 12]})", beams) == "31");  // a 9 ends the text
    CHECK(read_with(R"({"eos_token_id": [2, 12], "min_length": 4})", beams).size() >= 3);
    CHECK(read_with(R"({"bad_words_ids": [[10, 10], [2]]})", beams).find("77") ==
          std::string::npos);
    CHECK(read_with(R"({"bad_words_ids": [[2, 6]]})", beams).front() != '3');  // the start is 2
    // The start is the end id as well, so no text ends by itself.
    std::string once = read_with(R"({"no_repeat_ngram_size": 1})", beams);
    std::erase_if(once, [](char c) { return c < '0' || c > '9'; });
    CHECK(once.size() >= 3);
    CHECK(std::set<char>(once.begin(), once.end()).size() == once.size());
  }
}

TEST_CASE("Images and options that no reader takes are refused") {
  ImageTextReader reader = digit_reader();
  const auto refusal = [&](const Image& image, const ImageReadOptions& options = {}) {
    return model_error([&] { reader.read(image, options); }).value_or("");
  };
  CHECK_THAT(refusal({}), ContainsSubstring("image"));
  CHECK_THAT(refusal({4, 4, std::vector<uint8_t>(47)}), ContainsSubstring("has 47 bytes"));
  CHECK_THAT(refusal(sample(), {.beams = 0}), ContainsSubstring("beams"));
  CHECK_THAT(refusal(sample(), {.beams = 33}), ContainsSubstring("not 1 to 32"));
  // A single pixel is an image: whatever the model reads there, the answer ends.
  const ImageText dot = reader.read(Image{1, 1, {255, 255, 255}});
  CHECK(dot.complete);
  CHECK(dot.ids.size() <= 8);
  std::atomic<bool> cancel{true};
  CHECK_FALSE(reader.read(sample(), {.cancel = &cancel}).complete);
}
