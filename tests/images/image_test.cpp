// Images from files and their way to a model: what Pillow makes of them, and malformed files.
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>

#include "checkpoints/json.h"
#include "checkpoints/safetensors.h"
#include "images/formats.h"
#include "images/processor.h"
#include "mulciber/image.h"
#include "tests/catch.h"
#include "tests/model_error.h"
#include "tests/support.h"

using namespace mulciber;
using namespace mulciber::tests;
using Catch::Matchers::ContainsSubstring;

namespace {

const SafetensorsFile& reference() {
  static const SafetensorsFile kFile(data_dir() / "images.safetensors");
  return kFile;
}

/// Names of the tensors that end in `ending`, without it.
std::vector<std::string> names_with(const std::string& ending) {
  std::vector<std::string> names;
  for (const CheckpointTensor& tensor : reference().tensors())
    if (tensor.name.ends_with(ending))
      names.push_back(tensor.name.substr(0, tensor.name.size() - ending.size()));
  return names;
}

std::vector<std::byte> file_of(const std::string& name) {
  const auto bytes = reference().find(name + "/file")->bytes;
  return {bytes.begin(), bytes.end()};
}

Image image_of(const std::string& name) {
  const CheckpointTensor& tensor = *reference().find(name);
  Image image = {static_cast<uint32_t>(tensor.shape.at(1)),
                 static_cast<uint32_t>(tensor.shape.at(0)),
                 std::vector<uint8_t>(tensor.bytes.size())};
  std::memcpy(image.rgb.data(), tensor.bytes.data(), tensor.bytes.size());
  return image;
}

/// The largest difference of two images of one size, in steps of a byte.
int gap_of(const Image& a, const Image& b) {
  REQUIRE(a.width == b.width);
  REQUIRE(a.height == b.height);
  REQUIRE(a.rgb.size() == b.rgb.size());
  int largest = 0;
  for (size_t i = 0; i < a.rgb.size(); ++i)
    largest = std::max(largest, std::abs(int{a.rgb[i]} - int{b.rgb[i]}));
  return largest;
}

std::string refusal_of(std::span<const std::byte> bytes) {
  return model_error([&] { (void)decode_image(bytes, "photo"); }).value_or("");
}
std::string refusal_of(const std::string& text) {
  return refusal_of(std::as_bytes(std::span(text)));
}

/// Whether this build reads files of this kind; the reader of a kind that it does not read says so.
bool can_read(const std::string& name) {
  return refusal_of(file_of(name)).find("this build reads none") == std::string::npos;
}

void write_text(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

void put_big_endian(std::vector<std::byte>& bytes, size_t at, uint32_t value) {
  for (size_t i = 0; i < 4; ++i) bytes.at(at + i) = static_cast<std::byte>(value >> (24 - 8 * i));
}

uint32_t crc_of(std::span<const std::byte> bytes) {
  uint32_t crc = 0xffffffff;
  for (const std::byte byte : bytes) {
    crc ^= static_cast<uint32_t>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return ~crc;
}

/// A PNG file whose header gives another size, with the correct checksum.
std::vector<std::byte> png_of_size(uint32_t width, uint32_t height) {
  std::vector<std::byte> bytes = file_of("png_rgb");
  put_big_endian(bytes, 16, width);
  put_big_endian(bytes, 20, height);
  put_big_endian(bytes, 29, crc_of(std::span(bytes).subspan(12, 17)));
  return bytes;
}

}  // namespace

TEST_CASE("Images of every format decode to what Pillow gives, upright") {
  size_t read = 0;
  for (const std::string& name : names_with("/file")) {
    INFO(name);
    if (!can_read(name)) continue;
    ++read;
    // Decoders of lossy formats may round differently from version to version.
    const bool lossy = name.starts_with("jpeg") || name == "webp_lossy";
    CHECK(gap_of(decode_image(file_of(name), name), image_of(name + "/rgb")) <= (lossy ? 1 : 0));
  }
  CHECK(read >= 2);
}

TEST_CASE("Images are resized to the bytes that Pillow gives") {
  const Image image = image_of("resize/picture");
  const std::regex form("resize/([0-9])/([0-9]+)x([0-9]+)");
  size_t compared = 0;
  for (const CheckpointTensor& tensor : reference().tensors()) {
    std::smatch parts;
    if (!std::regex_match(tensor.name, parts, form)) continue;
    INFO(tensor.name);
    const auto number = [&](int part) { return static_cast<uint32_t>(std::stoul(parts[part])); };
    const Image resized = resize(image, number(2), number(3), static_cast<Resampling>(number(1)));
    CHECK(gap_of(resized, image_of(tensor.name)) == 0);
    ++compared;
  }
  CHECK(compared == 48);
}

TEST_CASE("Images are prepared as preprocessor_config.json says") {
  const Json cases = parse_json(reference().metadata().at("processors"), "metadata");
  const TemporaryFolder folder;
  for (const auto& [name, config] : cases.items()) {
    INFO(name);
    write_text(folder.path() / "preprocessor_config.json", config.dump());
    const ImageProcessor processor = read_image_processor({}, folder.path());
    CHECK(gap_of(processor(image_of("resize/picture")), image_of("processed/" + name)) == 0);
    CHECK(processor.scale[1] == Approx(1 / 255.0 / 0.25));
    CHECK(processor.shift[2] == Approx(-0.3 / 0.2));
  }
  CHECK(cases.size() == 4);
}

TEST_CASE("A preprocessor_config.json that asks for what is not known is refused by key") {
  const TemporaryFolder folder;
  const auto refusal = [&](const std::string& changed) {
    Json config = {{"size", {{"height", 8}, {"width", 8}}},
                   {"image_mean", {0, 0, 0}},
                   {"image_std", {1, 1, 1}}};
    config.merge_patch(parse_json(changed, "change"));
    write_text(folder.path() / "preprocessor_config.json", config.dump());
    return model_error([&] { (void)read_image_processor({}, folder.path()); }).value_or("");
  };
  CHECK(refusal("{}").empty());
  CHECK(refusal(R"({"size": 224})").empty());
  CHECK_THAT(refusal(R"({"size": {"height": 0}})"), ContainsSubstring("'height'"));
  CHECK_THAT(refusal(R"({"size": {"height": 100000}})"), ContainsSubstring("'height'"));
  CHECK_THAT(refusal(R"({"size": null})"), ContainsSubstring("'size'"));
  CHECK_THAT(refusal(R"({"size": {"shortest_edge": 8, "longest_edge": 9}})"),
             ContainsSubstring("both edges"));
  CHECK_THAT(refusal(R"({"resample": 6})"), ContainsSubstring("'resample'"));
  CHECK_THAT(refusal(R"({"image_mean": [0, 0]})"), ContainsSubstring("'image_mean'"));
  CHECK_THAT(refusal(R"({"image_std": [1, 0, 1]})"), ContainsSubstring("'image_std' is 0"));
  CHECK_THAT(refusal(R"({"do_pad": true})"), ContainsSubstring("'do_pad'"));
  const TemporaryFolder empty;
  CHECK_THAT(model_error([&] { (void)read_image_processor({}, empty.path()); }).value_or(""),
             ContainsSubstring("has no preprocessor_config.json"));
}

TEST_CASE("Images that are cut off anywhere end in an answer or one error") {
  for (const std::string& name : names_with("/file")) {
    INFO(name);
    if (!can_read(name)) continue;
    const std::vector<std::byte> bytes = file_of(name);
    for (size_t size = 0; size < bytes.size(); ++size) {
      const std::string error = refusal_of(std::span(bytes).first(size));
      // Data after the pixels may be missing: EXIF data, the end of the file.
      if (size <= bytes.size() / 2) CHECK_FALSE(error.empty());
    }
  }
}

TEST_CASE("Images with bits turned over end in an answer or one error") {
  uint32_t number = 99;
  for (const std::string& name : names_with("/file")) {
    INFO(name);
    for (int turn = 0; turn < 200; ++turn) {
      std::vector<std::byte> bytes = file_of(name);
      for (int i = 0; i < 3; ++i) {
        number = number * 1664525 + 1013904223;
        bytes[(number >> 8) % bytes.size()] ^= static_cast<std::byte>(1 << (number >> 29));
      }
      (void)refusal_of(bytes);
    }
  }
}

TEST_CASE("Sizes are checked before anything is allocated for them") {
  CHECK_THAT(refusal_of("P6\n100000 100000\n255\n"), ContainsSubstring("100000 by 100000 pixels"));
  CHECK_THAT(refusal_of("P6 0 5 255 "), ContainsSubstring("0 by 5 pixels; it shows nothing"));
  CHECK_THAT(refusal_of("P6 5 5 0 "), ContainsSubstring("largest value"));
  CHECK_THAT(refusal_of("P5 60000 60000 255 "), ContainsSubstring("60000 by 60000"));
  CHECK_THAT(refusal_of("P5 99999999999999999999 1 255 "), ContainsSubstring("header"));
  CHECK_THAT(refusal_of("P6 8000 8000 255 "), ContainsSubstring("ends before its pixels do"));
  CHECK_THAT(refusal_of("P6 2"), ContainsSubstring("no header"));
  CHECK_THAT(refusal_of(""), ContainsSubstring("is no image that can be read"));
  CHECK_THAT(refusal_of("GIF89a"), ContainsSubstring("PNG, JPEG, WebP or PPM"));
  if (can_read("png_rgb")) {
    CHECK_THAT(refusal_of(png_of_size(100000, 100000)),
               ContainsSubstring("100000 by 100000 pixels; at most 67108864"));
    CHECK_THAT(refusal_of(png_of_size(8000, 8000)), ContainsSubstring("ends before its pixels do"));
    CHECK_THAT(refusal_of(png_of_size(0, 15)), ContainsSubstring("PNG file that cannot be read"));
    CHECK(refusal_of(png_of_size(23, 15)).empty());
    // The length of a chunk of EXIF data is given as 1.6 GB.
    std::vector<std::byte> long_chunk = file_of("png_rgb");
    put_big_endian(long_chunk, 33, 0x61000000);
    std::memcpy(&long_chunk[37], "eXIf", 4);
    CHECK_THAT(refusal_of(long_chunk), ContainsSubstring("ends before its pixels do"));
  }
}

TEST_CASE("PPM files of 16 bits, of other largest values and with comments are read") {
  const std::string wide = std::string("P5 # two\n2 1\n65535\n") + "\x80\x7f\xff\xff";
  CHECK(decode_image(std::as_bytes(std::span(wide)), "").rgb ==
        std::vector<uint8_t>{128, 128, 128, 255, 255, 255});
  const std::string narrow = std::string("P6\n1 1\n# a comment\n3\n") + '\x01' + '\x03' + '\x09';
  CHECK(decode_image(std::as_bytes(std::span(narrow)), "").rgb ==
        std::vector<uint8_t>{85, 255, 255});
}

TEST_CASE("EXIF data that lead nowhere leave an image as it is") {
  const auto orientation = [](std::string_view text) {
    return exif_orientation(std::as_bytes(std::span(text)));
  };
  CHECK(orientation("") == 1);
  CHECK(orientation(std::string_view("II*\0\xff\xff\xff\xff", 8)) == 1);
  CHECK(orientation(
            std::string_view("MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0", 22)) == 6);
  CHECK(orientation(
            std::string_view("MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x09\0\0", 22)) == 1);
  CHECK(orientation(std::string_view("MM\0*\0\0\0\x08\xff\xff\x01\x11", 12)) == 1);
}

TEST_CASE("Images are cut at places inside and outside of them") {
  Image image = {3, 2, {}};
  for (uint8_t i = 0; i < 18; ++i) image.rgb.push_back(i);
  CHECK(crop(image, 1, 1, 2, 1).rgb == std::vector<uint8_t>{12, 13, 14, 15, 16, 17});
  CHECK(crop(image, -1, 0, 2, 1).rgb == std::vector<uint8_t>{0, 0, 0, 0, 1, 2});
  CHECK(crop(image, 2, 1, 2, 2).rgb == std::vector<uint8_t>{15, 16, 17, 0, 0, 0, 0, 0, 0, 0, 0, 0});
  CHECK(crop(image, 9, 9, 1, 1).rgb == std::vector<uint8_t>{0, 0, 0});
}
