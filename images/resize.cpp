#include "images/resize.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "images/formats.h"

namespace mulciber {
namespace {

double sinc(double x) {
  if (x == 0) return 1;
  const double angle = x * std::numbers::pi;
  return std::sin(angle) / angle;
}

/// A filter: its support in pixels, and its weight at a distance.
struct ResizeFilter {
  double support;
  double (*weight)(double x);
};

ResizeFilter filter_of(Resampling filter) {
  switch (filter) {
    case Resampling::kNearest: break;
    case Resampling::kBox: return {0.5, [](double x) { return x > -0.5 && x <= 0.5 ? 1.0 : 0.0; }};
    case Resampling::kBilinear:
      return {1, [](double x) { return std::max(0.0, 1 - std::fabs(x)); }};
    case Resampling::kHamming:
      return {1, [](double x) {
                x = std::fabs(x);
                if (x == 0) return 1.0;
                return x < 1 ? sinc(x) * (0.54 + 0.46 * std::cos(x * std::numbers::pi)) : 0.0;
              }};
    case Resampling::kBicubic:  // Keys 1981, doi:10.1109/TASSP.1981.1163711, with a = -1/2
      return {2, [](double x) {
                constexpr double kA = -0.5;
                x = std::fabs(x);
                if (x < 1) return ((kA + 2) * x - (kA + 3)) * x * x + 1;
                return x < 2 ? (((x - 5) * x + 8) * x - 4) * kA : 0.0;
              }};
    case Resampling::kLanczos:
      return {3, [](double x) { return x >= -3 && x < 3 ? sinc(x) * sinc(x / 3) : 0.0; }};
  }
  return {0, nullptr};
}

// The product of a byte and a weight has 32 bits: 8 for the byte and 22 after the point leave two,
// for the sign and for sums above 255.
constexpr int kPrecision = 32 - 8 - 2;

/// The pixels of a line that contribute to one pixel of the resized line, and the weight of each.
struct Taps {
  uint32_t first = 0;
  std::vector<int32_t> weights;
};

std::vector<Taps> taps_of(uint32_t from, uint32_t to, const ResizeFilter& filter) {
  const double step = static_cast<double>(from) / to, wide = std::max(step, 1.0);
  const double reach = filter.support * wide;
  std::vector<Taps> all(to);
  std::vector<double> weights;
  for (uint32_t i = 0; i < to; ++i) {
    const double center = (i + 0.5) * step;
    const auto first = static_cast<uint32_t>(std::max(0.0, std::trunc(center - reach + 0.5)));
    const auto end =
        std::min(from, static_cast<uint32_t>(std::max(0.0, std::trunc(center + reach + 0.5))));
    weights.clear();
    double sum = 0;
    for (uint32_t x = first; x < end; ++x) {
      weights.push_back(filter.weight((x - center + 0.5) * (1 / wide)));
      sum += weights.back();
    }
    all[i].first = first;
    for (const double weight : weights) {
      const double share = (sum != 0 ? weight / sum : weight) * (1 << kPrecision);
      all[i].weights.push_back(static_cast<int32_t>(share < 0 ? share - 0.5 : share + 0.5));
    }
  }
  return all;
}

uint8_t rounded_byte(int64_t sum) {
  return static_cast<uint8_t>(std::clamp<int64_t>(sum >> kPrecision, 0, 255));
}
constexpr int64_t kHalf = int64_t{1} << (kPrecision - 1);

Image resized_across(const Image& image, uint32_t width, const ResizeFilter& filter) {
  const std::vector<Taps> taps = taps_of(image.width, width, filter);
  Image result = empty_image(width, image.height);
  for (uint32_t y = 0; y < image.height; ++y) {
    const uint8_t* line = &image.rgb[uint64_t{y} * image.width * 3];
    uint8_t* to = &result.rgb[uint64_t{y} * width * 3];
    for (uint32_t x = 0; x < width; ++x) {
      const uint8_t* pixel = line + uint64_t{taps[x].first} * 3;
      int64_t sums[3] = {kHalf, kHalf, kHalf};
      for (const int32_t weight : taps[x].weights)
        for (int64_t& sum : sums) sum += int64_t{weight} * *pixel++;
      for (const int64_t sum : sums) *to++ = rounded_byte(sum);
    }
  }
  return result;
}

Image resized_down(const Image& image, uint32_t height, const ResizeFilter& filter) {
  const std::vector<Taps> taps = taps_of(image.height, height, filter);
  Image result = empty_image(image.width, height);
  const uint64_t stride = uint64_t{image.width} * 3;
  std::vector<int64_t> sums(stride);
  for (uint32_t y = 0; y < height; ++y) {
    std::ranges::fill(sums, kHalf);
    const uint8_t* line = image.rgb.data() + taps[y].first * stride;
    for (const int32_t weight : taps[y].weights) {
      for (uint64_t i = 0; i < stride; ++i) sums[i] += int64_t{weight} * line[i];
      line += stride;
    }
    std::ranges::transform(sums, result.rgb.begin() + static_cast<std::ptrdiff_t>(y * stride),
                           rounded_byte);
  }
  return result;
}

Image nearest(const Image& image, uint32_t width, uint32_t height) {
  Image result = empty_image(width, height);
  for (uint32_t y = 0; y < height; ++y) {
    const auto from_y = static_cast<uint64_t>((y + 0.5) * image.height / height);
    for (uint32_t x = 0; x < width; ++x) {
      const auto from_x = static_cast<uint64_t>((x + 0.5) * image.width / width);
      std::copy_n(&image.rgb[(from_y * image.width + from_x) * 3], 3,
                  &result.rgb[(uint64_t{y} * width + x) * 3]);
    }
  }
  return result;
}

}  // namespace

Image resize(const Image& image, uint32_t width, uint32_t height, Resampling filter) {
  check_image_size(width, height, "image to be resized to");
  check_image_size(width, image.height, "image to be resized to");
  if (filter == Resampling::kNearest) return nearest(image, width, height);
  const ResizeFilter form = filter_of(filter);
  if (image.width == width)
    return image.height == height ? image : resized_down(image, height, form);
  const Image across = resized_across(image, width, form);
  return image.height == height ? across : resized_down(across, height, form);
}

Image crop(const Image& image, int64_t left, int64_t top, uint32_t width, uint32_t height) {
  check_image_size(width, height, "image to be cut to");
  Image result = empty_image(width, height);
  const int64_t begin = std::max<int64_t>(0, -left),
                end = std::min<int64_t>(width, int64_t{image.width} - left);
  for (int64_t y = 0; y < height && begin < end; ++y) {
    if (y + top < 0 || y + top >= image.height) continue;
    std::copy_n(&image.rgb[static_cast<uint64_t>(((y + top) * image.width + begin + left) * 3)],
                (end - begin) * 3, result.rgb.begin() + (y * width + begin) * 3);
  }
  return result;
}

}  // namespace mulciber
