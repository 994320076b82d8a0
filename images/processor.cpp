#include "images/processor.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "checkpoints/config_reader.h"
#include "images/formats.h"
#include "mulciber/error.h"

namespace mulciber {
namespace {

constexpr const char* kProcessorRemedy = "take the file from the model's own folder";

uint32_t side_of(const ConfigReader& config, const char* key) {
  return static_cast<uint32_t>(config.integer(key, 1, kMostSide));
}

/// Reads a size given as a number or as {"height", "width"}.
ImageProcessor::Size size_of(const ConfigReader& config, const char* key) {
  if (config.value(key).is_number()) {
    const uint32_t side = side_of(config, key);
    return {side, side};
  }
  const ConfigReader size = config.object(key);
  return {side_of(size, "width"), side_of(size, "height")};
}

/// Reads one number for each channel, or one for all.
std::array<double, 3> channels_of(const ConfigReader& config, const char* key) {
  const Json& found = config.value(key);
  std::array<double, 3> values;
  if (found.is_number()) {
    values.fill(found.get<double>());
  } else {
    if (!found.is_array() || found.size() != values.size() ||
        !std::ranges::all_of(found, [](const Json& value) { return value.is_number(); }))
      config.fail(key, "is not a number for each of red, green and blue");
    for (size_t i = 0; i < values.size(); ++i) values[i] = found[i].get<double>();
  }
  if (!std::ranges::all_of(values, [](double value) { return std::isfinite(value); }))
    config.fail(key, "is not finite");
  return values;
}

void read_resizing(const ConfigReader& config, ImageProcessor& processor) {
  if (!config.boolean_or("do_resize", true)) return;
  const auto filter = config.integer_or("resample", 2, 0, 5);
  processor.filter = static_cast<Resampling>(filter);
  // Files of older versions give one number; CLIP's class takes it as the shorter side.
  const std::string name =
      config.text_or("image_processor_type", config.text_or("feature_extractor_type", ""));
  if (!config.value("size").is_object()) {
    if (name.starts_with("CLIP"))
      processor.shorter_side = side_of(config, "size");
    else
      processor.stretched_to = size_of(config, "size");
    return;
  }
  const ConfigReader size = config.object("size");
  if (size.has("shortest_edge")) {
    if (size.has("longest_edge")) config.fail("size", "bounds both edges, which is not known");
    processor.shorter_side = side_of(size, "shortest_edge");
  } else {
    processor.stretched_to = size_of(config, "size");
  }
}

void read_tiling(const ConfigReader& config, ImageProcessor& processor) {
  ImageTiling& tiling = processor.tiling.emplace();
  processor.filter = static_cast<Resampling>(config.integer_or("resample", 1, 0, 5));
  if (config.boolean_or("do_resize", true))
    tiling.longer_side = side_of(config.object("size"), "longest_edge");
  tiling.side = side_of(config.object("max_image_size"), "longest_edge");
  tiling.splits = config.boolean_or("do_image_splitting", true);
}

ImageProcessor read_processor(const ConfigReader& config) {
  ImageProcessor processor;
  const bool tiles = config.has("max_image_size");
  tiles ? read_tiling(config, processor) : read_resizing(config, processor);
  if (config.boolean_or("do_center_crop", false)) {
    const char* key = config.has("crop_size") ? "crop_size" : "size";
    processor.cropped_to = size_of(config, key);
  }
  // Tiles have equal sizes, so they need no padding.
  if (!tiles && config.boolean_or("do_pad", false))
    config.fail("do_pad", "is true, which is not known");
  const double factor = config.boolean_or("do_rescale", true)
                            ? config.number_or("rescale_factor", 1.0 / 255, -1e6, 1e6)
                            : 1;
  std::array<double, 3> mean = {0, 0, 0}, deviation = {1, 1, 1};
  if (config.boolean_or("do_normalize", true)) {
    mean = channels_of(config, "image_mean");
    deviation = channels_of(config, "image_std");
  }
  for (size_t i = 0; i < mean.size(); ++i) {
    if (deviation[i] == 0) config.fail("image_std", "is 0");
    processor.scale[i] = static_cast<float>(factor / deviation[i]);
    processor.shift[i] = static_cast<float>(-mean[i] / deviation[i]);
  }
  return processor;
}

}  // namespace

Image ImageProcessor::operator()(const Image& image) const {
  check_image_size(image.width, image.height, "image");
  Image result = image;
  if (stretched_to) {
    result = resize(image, stretched_to->width, stretched_to->height, filter);
  } else if (shorter_side) {
    const uint64_t side = *shorter_side, shorter = std::min(image.width, image.height),
                   longer = std::max(image.width, image.height);
    const uint64_t other = side * longer / shorter;
    const bool upright = image.width <= image.height;
    const uint64_t width = upright ? side : other, height = upright ? other : side;
    check_image_size(width, height, "image, its shorter side resized,");
    result = resize(image, static_cast<uint32_t>(width), static_cast<uint32_t>(height), filter);
  }
  if (cropped_to) {
    // An image that is too small is centred on black; if an odd number of lines is missing, the
    // smaller half is above.
    const auto before = [](uint32_t all, uint32_t wanted) {
      const int64_t over = int64_t{all} - wanted;
      return over >= 0 ? over / 2 : -((-over + 1) / 2);
    };
    result = crop(result, before(result.width, cropped_to->width),
                  before(result.height, cropped_to->height), cropped_to->width, cropped_to->height);
  }
  return result;
}

namespace {

/// Size of an image whose longer side is scaled to a length, computed and rounded like in
/// transformers' Idefics3.
ImageProcessor::Size longer_side_as(uint32_t width, uint32_t height, uint32_t side) {
  constexpr uint32_t kMostTransformers = 4096;
  const auto scaled = [](ImageProcessor::Size size, uint32_t longer, uint32_t step) {
    const double ratio = static_cast<double>(size.width) / size.height;
    const bool wide = size.width >= size.height;
    auto other = static_cast<uint32_t>(wide ? longer / ratio : longer * ratio);
    other = std::max((other + step - 1) / step * step, 1u);
    return wide ? ImageProcessor::Size{longer, other} : ImageProcessor::Size{other, longer};
  };
  ImageProcessor::Size size = scaled({width, height}, side, 2);
  if (std::max(size.width, size.height) > kMostTransformers)
    size = scaled(size, kMostTransformers, 1);
  return size;
}

}  // namespace

ImageTiles ImageProcessor::tiles(const Image& image) const {
  if (!tiling) return {.images = {(*this)(image)}};
  check_image_size(image.width, image.height, "image");
  Image whole = image;
  if (tiling->longer_side > 0) {
    const Size size = longer_side_as(image.width, image.height, tiling->longer_side);
    whole = resize(image, size.width, size.height, filter);
  }
  const uint32_t side = tiling->side;
  const auto in_tiles = [&](uint32_t length) { return (length + side - 1) / side * side; };
  if (tiling->splits) {
    const double ratio = static_cast<double>(whole.width) / whole.height;
    Size size;
    if (whole.width >= whole.height) {
      size.width = in_tiles(whole.width);
      size.height = in_tiles(static_cast<uint32_t>(size.width / ratio));
    } else {
      size.height = in_tiles(whole.height);
      size.width = in_tiles(static_cast<uint32_t>(size.height * ratio));
    }
    check_image_size(size.width, size.height, "image in whole tiles");
    whole = resize(whole, size.width, size.height, filter);
  }
  ImageTiles tiles;
  if (tiling->splits && (whole.width > side || whole.height > side)) {
    tiles.rows = whole.height / side;
    tiles.columns = whole.width / side;
    for (uint32_t row = 0; row < tiles.rows; ++row)
      for (uint32_t column = 0; column < tiles.columns; ++column)
        tiles.images.push_back(
            crop(whole, int64_t{column} * side, int64_t{row} * side, side, side));
  }
  tiles.images.push_back(resize(whole, side, side, filter));
  return tiles;
}

ImageProcessor read_image_processor(const ModelFiles& files, const std::filesystem::path& folder) {
  const auto path = folder / "preprocessor_config.json";
  // This file exists since transformers 5.
  if (const auto whole = folder / "processor_config.json";
      !files.exists(path) && files.exists(whole)) {
    const Json document = read_json(files.open(whole));
    const ConfigReader config(document, whole.string(), kProcessorRemedy);
    if (config.has("image_processor")) return read_processor(config.object("image_processor"));
  }
  if (!files.exists(path))
    throw ModelError(folder.string(), "has no preprocessor_config.json",
                     "it says how images become what the model reads: download it with the "
                     "model");
  const Json document = read_json(files.open(path));
  return read_processor(ConfigReader(document, path.string(), kProcessorRemedy));
}

std::vector<uint32_t> pixel_words(const Image& image) {
  std::vector<uint32_t> words(uint64_t{image.width} * image.height);
  for (size_t i = 0; i < words.size(); ++i) {
    const uint8_t* pixel = &image.rgb[i * 3];
    words[i] = uint32_t{pixel[0]} | uint32_t{pixel[1]} << 8 | uint32_t{pixel[2]} << 16;
  }
  return words;
}

}  // namespace mulciber
