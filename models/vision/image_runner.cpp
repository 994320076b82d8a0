#include "models/vision/image_runner.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/clock.h"
#include "models/adapters/adapters.h"
#include "models/core/model_options.h"
#include "models/core/trim_memory.h"
#include "mulciber/error.h"

namespace mulciber {
namespace {

/// The tokens to which the token of the whole image attends: from one map, a value for each token.
std::vector<double> attended(std::span<const float> map, size_t tokens, bool has_class_token) {
  if (has_class_token) return {map.begin(), map.begin() + static_cast<std::ptrdiff_t>(tokens)};
  std::vector<double> mean(tokens);
  for (size_t row = 0; row < tokens; ++row)
    for (size_t column = 0; column < tokens; ++column)
      mean[column] += map[row * tokens + column] / static_cast<double>(tokens);
  return mean;
}

/// One step of the rollout, from the last layer to the first: half of the arrived weight stays
/// where it is, half goes to the tokens to which the heads attend, on average.
std::vector<double> rolled_out(std::span<const double> arrived, std::span<const float> maps,
                               size_t heads, size_t tokens) {
  std::vector<double> result(tokens);
  for (size_t row = 0; row < tokens; ++row) {
    result[row] += 0.5 * arrived[row];
    for (size_t head = 0; head < heads; ++head) {
      const double share = 0.5 * arrived[row] / static_cast<double>(heads);
      const float* weights = &maps[(head * tokens + row) * tokens];
      for (size_t column = 0; column < tokens; ++column) result[column] += share * weights[column];
    }
  }
  return result;
}

}  // namespace

void ImageRunner::require(const OpenModel& opened, Capability capability) {
  opened.require(capability);
  const std::string where = opened.checkpoint().path().string();
  const VisionConfig& wanted = *opened.architecture().vision();
  if (capability == Capability::kClassifyImages && wanted.head == VisionHead::kNone)
    throw ModelError(where,
                     fmt::format("is of class {}, which has no head that {}",
                                 opened.checkpoint().model_class(), row_of(capability).does),
                     "use a checkpoint whose class ends in ForImageClassification");
  if (wanted.tower.channels != 3)
    throw ModelError(where, fmt::format("reads images of {} channels", wanted.tower.channels),
                     "images have red, green and blue");
}

void ImageRunner::load(const OpenModel& opened, const LoadOptions& options, Capability capability,
                       std::shared_ptr<WeightsLoad> weights) {
  const auto start = Clock::now();
  require(opened, capability);
  processor = read_image_processor(opened.checkpoint().files(), opened.checkpoint().folder());
  ModelOptions loading = model_options(options);
  loading.weights = std::move(weights);
  model = load_model(*device, opened, loading);
  seeing = model->sees();
  statistics.weight_bytes = model->weight_bytes();
  statistics.load_seconds = seconds_since(start);
}

void ImageRunner::begin(size_t images) {
  statistics = {.load_seconds = statistics.load_seconds,
                .weight_bytes = statistics.weight_bytes,
                .predicted_device_bytes = statistics.weight_bytes};
  statistics.images = images;
}

Image ImageRunner::prepared(const Image& image) const {
  if (image.rgb.size() != uint64_t{image.width} * image.height * 3)
    throw ModelError("image",
                     fmt::format("has {} bytes, {} by {} pixels have three each", image.rgb.size(),
                                 image.width, image.height),
                     "");
  Image seen = processor(image);
  const VisionTower& tower = config().tower;
  if (!tower.any_size || seen.width < tower.patch || seen.height < tower.patch) return seen;
  // Pixels beside whole patches are not read, as in a convolution.
  return crop(seen, 0, 0, seen.width - seen.width % tower.patch,
              seen.height - seen.height % tower.patch);
}

ImageRequest ImageRunner::request_for(ImageSize size) const {
  ImageRequest request;
  request.size = size;
  request.normalization = {processor.scale, processor.shift};
  return request;
}

void ImageRunner::run(std::span<const Image> images, ImageOutput output, bool normalized,
                      const ImageBatchOptions& options, const Take& take) {
  std::vector<std::vector<uint32_t>> batch;
  ImageSize size;
  size_t done = 0;
  const auto flush = [&] {
    if (batch.empty()) return;
    ImageRequest request = request_for(size);
    request.pixels = batch;
    request.output = output;
    request.normalized = normalized;
    EncoderResult found = seeing->see(request);
    statistics.batches += 1;
    statistics.prepare_seconds += found.prepare_seconds;
    statistics.run_seconds += found.run_seconds;
    statistics.predicted_device_bytes = std::max(statistics.predicted_device_bytes,
                                                 statistics.weight_bytes + found.predicted_bytes);
    for (std::vector<float>& values : found.values) take(done++, std::move(values), size);
    batch.clear();
    if (options.progress) options.progress(done, images.size());
  };
  uint32_t most = 0;
  for (const Image& image : images) {
    const auto start = Clock::now();
    const Image seen = prepared(image);
    statistics.resize_seconds += seconds_since(start);
    const ImageSize its = {seen.height, seen.width};
    if (most == 0 || !(its == size) || batch.size() >= most) {
      flush();
      if (options.cancel && options.cancel->load()) return;
      size = its;
      most = std::min(std::max(options.batch_images, 1u), seeing->batch_limit(size));
    }
    batch.push_back(pixel_words(seen));
  }
  flush();
  statistics.peak_device_bytes = device->memory().peak();
}

ImageAttention ImageRunner::attention(const Image& image) {
  ImageAttention result;
  result.seen = prepared(image);
  const std::vector<std::vector<uint32_t>> pixels = {pixel_words(result.seen)};
  ImageRequest request = request_for({result.seen.height, result.seen.width});
  request.pixels = pixels;
  const std::vector<float> maps = seeing->attention_maps(request);
  const VisionTower& tower = config().tower;
  result.layers = tower.layers;
  result.heads = tower.heads;
  result.rows = result.seen.height / tower.patch;
  result.columns = result.seen.width / tower.patch;
  const size_t first = tower.first_tokens.size(),
               tokens = first + uint64_t{result.rows} * result.columns, area = tokens * tokens;
  for (size_t map = 0; map < size_t{result.layers} * result.heads; ++map) {
    const std::vector<double> weights =
        attended(std::span(maps).subspan(map * area, area), tokens, first > 0);
    result.maps.insert(result.maps.end(), weights.begin() + static_cast<std::ptrdiff_t>(first),
                       weights.end());
  }
  std::vector<double> arrived(tokens, first > 0 ? 0.0 : 1.0 / static_cast<double>(tokens));
  if (first > 0) arrived[0] = 1;
  for (size_t layer = result.layers; layer-- > 0;)
    arrived = rolled_out(arrived,
                         std::span(maps).subspan(layer * result.heads * area, result.heads * area),
                         result.heads, tokens);
  result.rollout.assign(arrived.begin() + static_cast<std::ptrdiff_t>(first), arrived.end());
  return result;
}

ImageExtents ImageRunner::extents() const {
  const VisionTower& tower = config().tower;
  const bool projects = config().texts && config().projection > 0;
  return {.width = projects ? config().projection : tower.width,
          .state_width = tower.width,
          .image_width = tower.width_pixels,
          .image_height = tower.height,
          .any_size = tower.any_size,
          .patch = tower.patch,
          .first_tokens = static_cast<uint32_t>(tower.first_tokens.size()),
          .layers = tower.layers,
          .heads = tower.heads,
          .text_tokens = config().texts ? config().texts->context : 0};
}

uint64_t ImageRunner::trim() {
  return trim_memory(*device, [&] { seeing->trim(); });
}

}  // namespace mulciber
