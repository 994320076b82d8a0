// Images, batches of them, and their results, between C and C++.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "capi/result.h"
#include "capi/structures.h"
#include "mulciber/c/image.h"
#include "mulciber/image_encoder.h"

namespace mulciber::c {

inline Image image_in_memory(const MulciberImage* from) {
  const auto image = of_any_version(from, "MulciberImage");
  if (image.pixels)
    throw SettingError("image", "has pixels in a buffer", "begin a task with it, or give rgb");
  // The size is checked against the limit before any pixel is read.
  constexpr uint64_t kPixels = 1 << 26;
  const uint64_t pixels = uint64_t{image.width} * image.height;
  if (pixels == 0 || pixels > kPixels)
    throw SettingError("image", fmt::format("has {} x {} pixels", image.width, image.height),
                       fmt::format("give one of 1 to {} pixels", kPixels));
  const uint8_t* rgb = &given_to(image.rgb, "rgb");
  return {image.width, image.height, std::vector<uint8_t>(rgb, rgb + pixels * 3)};
}

/// All have the size of the first.
inline std::vector<Image> images_in_memory(uint32_t count, const MulciberImage* images) {
  std::vector<Image> result;
  if (count > 0) given_to(images, "images");
  const auto* at = reinterpret_cast<const char*>(images);
  for (uint32_t i = 0; i < count; ++i, at += images->size)
    result.push_back(image_in_memory(reinterpret_cast<const MulciberImage*>(at)));
  return result;
}

/// Calls a C function with the numbers of finished and of all images.
inline std::function<void(size_t done, size_t total)> image_progress(
    void (*call)(void* user, uint32_t done, uint32_t total), void* user) {
  if (!call) return nullptr;
  return [call, user](size_t done, size_t total) {
    call(user, static_cast<uint32_t>(done), static_cast<uint32_t>(total));
  };
}

inline ImageBatchOptions image_batch_options(const MulciberImageBatchInfo* from) {
  const auto info = optional_of_any_version(from, "MulciberImageBatchInfo");
  ImageBatchOptions options;
  if (info.batch_images > 0) options.batch_images = info.batch_images;
  options.progress = image_progress(info.on_progress, info.user);
  options.cancel = cancel_flag(info.cancel);
  return options;
}

/// The image must outlive the result.
inline MulciberImage shown_image(const Image& image) {
  return {.size = sizeof(MulciberImage),
          .width = image.width,
          .height = image.height,
          .rgb = image.rgb.data(),
          .pixels = nullptr};
}

/// Attention maps, and their form in C, which points into this object.
struct ShownImageAttention {
  ImageAttention found;
  MulciberImage seen = {};
  MulciberImageAttention shown = {};

  const MulciberImageAttention* show() {
    seen = shown_image(found.seen);
    shown = {.size = sizeof(MulciberImageAttention),
             .layers = found.layers,
             .heads = found.heads,
             .rows = found.rows,
             .columns = found.columns,
             .maps = found.maps.data(),
             .rollout = found.rollout.data(),
             .seen = &seen};
    return &shown;
  }
};

inline void give_image_statistics(MulciberImageStatistics* to, const ImageStatistics& from) {
  give(to, "MulciberImageStatistics", [&](MulciberImageStatistics& statistics) {
    statistics.images = static_cast<uint32_t>(from.images);
    statistics.batches = static_cast<uint32_t>(from.batches);
    statistics.load_seconds = from.load_seconds;
    statistics.resize_seconds = from.resize_seconds;
    statistics.prepare_seconds = from.prepare_seconds;
    statistics.run_seconds = from.run_seconds;
    statistics.total_seconds = from.total_seconds;
    statistics.weight_bytes = from.weight_bytes;
    statistics.predicted_device_bytes = from.predicted_device_bytes;
    statistics.peak_device_bytes = from.peak_device_bytes;
  });
}

/// Frees what a model keeps for later calls. freed: may be null.
template <typename Kept>
void trim_image_model(Kept& kept, uint64_t* freed) {
  const uint64_t bytes = kept.trim();
  if (freed) *freed = bytes;
}

}  // namespace mulciber::c
