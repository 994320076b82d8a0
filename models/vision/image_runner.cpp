#include "models/vision/image_runner.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/clock.h"
#include "models/adapters/adapters.h"
#include "models/core/model_options.h"
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

void ImageRunner::load(const OpenModel& opened, const LoadOptions& options, Capability capability) {
  const auto start = Clock::now();
  opened.require(capability);
  const std::string where = opened.checkpoint().path().string();
  const VisionConfig& wanted = *opened.architecture().vision();
  if (capability == Capability::kClassifyPictures && wanted.head == PictureHead::kNone)
    throw ModelError(where,
                     fmt::format("is of class {}, which has no head that {}",
                                 opened.checkpoint().model_class(), row_of(capability).does),
                     "use a checkpoint whose class ends in ForImageClassification");
  if (wanted.pictures.channels != 3)
    throw ModelError(where, fmt::format("reads pictures of {} channels", wanted.pictures.channels),
                     "pictures have red, green and blue");
  processor = read_picture_processor(opened.checkpoint().files(), opened.checkpoint().folder());
  model = load_model(*device, opened, model_options(options));
  seeing = model->sees();
  statistics.weight_bytes = model->weight_bytes();
  statistics.load_seconds = seconds_since(start);
}

void ImageRunner::begin(size_t pictures) {
  statistics = {.pictures = pictures,
                .load_seconds = statistics.load_seconds,
                .weight_bytes = statistics.weight_bytes,
                .predicted_device_bytes = statistics.weight_bytes};
}

Picture ImageRunner::prepared(const Picture& picture) const {
  if (picture.rgb.size() != uint64_t{picture.width} * picture.height * 3)
    throw ModelError("picture",
                     fmt::format("has {} bytes, {} by {} pixels have three each",
                                 picture.rgb.size(), picture.width, picture.height),
                     "");
  Picture seen = processor(picture);
  const PictureTower& tower = config().pictures;
  if (!tower.any_size || seen.width < tower.patch || seen.height < tower.patch) return seen;
  // Pixels beside whole patches are not read, as in a convolution.
  return crop(seen, 0, 0, seen.width - seen.width % tower.patch,
              seen.height - seen.height % tower.patch);
}

PictureRequest ImageRunner::request_for(PictureSize size) const {
  PictureRequest request;
  request.size = size;
  request.normalization = {processor.scale, processor.shift};
  return request;
}

void ImageRunner::run(std::span<const Picture> pictures, PictureOutput output, bool normalized,
                      const PictureBatchOptions& options,
                      const std::function<void(size_t index, std::vector<float> values)>& take) {
  std::vector<std::vector<uint32_t>> batch;
  PictureSize size;
  size_t done = 0;
  const auto flush = [&] {
    if (batch.empty()) return;
    PictureRequest request = request_for(size);
    request.pixels = batch;
    request.output = output;
    request.normalized = normalized;
    EncoderResult found = seeing->see(request);
    statistics.batches += 1;
    statistics.prepare_seconds += found.prepare_seconds;
    statistics.run_seconds += found.run_seconds;
    statistics.predicted_device_bytes = std::max(statistics.predicted_device_bytes,
                                                 statistics.weight_bytes + found.predicted_bytes);
    for (std::vector<float>& values : found.values) take(done++, std::move(values));
    batch.clear();
    if (options.progress) options.progress(done, pictures.size());
  };
  uint32_t most = 0;
  for (const Picture& picture : pictures) {
    const auto start = Clock::now();
    const Picture seen = prepared(picture);
    statistics.resize_seconds += seconds_since(start);
    const PictureSize its = {seen.height, seen.width};
    if (most == 0 || !(its == size) || batch.size() >= most) {
      flush();
      if (options.cancel && options.cancel->load()) return;
      size = its;
      most = std::min(std::max(options.batch_pictures, 1u), seeing->batch_limit(size));
    }
    batch.push_back(pixel_words(seen));
  }
  flush();
  statistics.peak_device_bytes = device->memory().peak();
}

PictureAttention ImageRunner::attention(const Picture& picture) {
  PictureAttention result;
  result.seen = prepared(picture);
  const std::vector<std::vector<uint32_t>> pixels = {pixel_words(result.seen)};
  PictureRequest request = request_for({result.seen.height, result.seen.width});
  request.pixels = pixels;
  const std::vector<float> maps = seeing->attention_maps(request);
  const PictureTower& tower = config().pictures;
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

}  // namespace mulciber
