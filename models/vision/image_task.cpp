#include "mulciber/image_task.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "models/core/frame_task.h"
#include "models/vision/image_copies.h"
#include "models/vision/image_encoder_impl.h"
#include "models/vision/image_pass.h"

namespace mulciber {

struct ImageTask::Work {
  std::shared_ptr<ImageEncoder::Impl> encoder;
  std::unique_ptr<ImagePass> started;  // until the task has it
  const ImagePass* pass = nullptr;
  std::optional<ImageCopies> images;

  Work(std::shared_ptr<ImageEncoder::Impl> owner, ImageStart start, const ImageTaskOptions& options)
      : encoder(std::move(owner)) {
    start.normalization = encoder->request_for(start.size).normalization;
    start.output = encoder->output(options.pooling);
    start.normalized = options.normalize;
    start.attention = options.attention;
    started = encoder->seeing->start(start);
    pass = started.get();
    if (options.attention) images.emplace(*encoder->device, pass->map(0, 0, 0));
  }

  static std::unique_ptr<Work> of(const std::shared_ptr<ImageEncoder::Impl>& encoder,
                                  const Image& image, const ImageTaskOptions& options) {
    const Image seen = encoder->prepared(image);
    ImageStart start;
    start.size = {seen.height, seen.width};
    start.pixels = pixel_words(seen);
    return std::make_unique<Work>(encoder, std::move(start), options);
  }
  static std::unique_ptr<Work> of(const std::shared_ptr<ImageEncoder::Impl>& encoder,
                                  const ApplicationBuffer& pixels, VkExtent2D size,
                                  const ImageTaskOptions& options) {
    const uint64_t bytes = uint64_t{size.width} * size.height * sizeof(uint32_t);
    if (pixels.buffer == VK_NULL_HANDLE || pixels.size < bytes)
      throw SettingError("pixels",
                         fmt::format("of {} by {} take {} bytes, the buffer's range has {}",
                                     size.width, size.height, bytes, pixels.size),
                         "give ApplicationBuffer::buffer and a size that suffices");
    ImageStart start;
    start.size = {size.height, size.width};
    start.from.emplace();
    start.from->buffer = pixels.buffer;
    start.from->offset = pixels.offset;
    start.from->size = bytes;
    return std::make_unique<Work>(encoder, std::move(start), options);
  }

  PaddedRows rows(const PatchMap& map) const {
    if (map.layer >= pass->layers() || map.head >= pass->heads())
      throw SettingError("PatchMap",
                         fmt::format("names layer {} and head {} of {} and {}", map.layer, map.head,
                                     pass->layers(), pass->heads()),
                         pass->layers() > 0 ? "layers() and heads() have their numbers"
                                            : "set ImageTaskOptions::attention");
    const ImageSize grid = pass->grid();
    if (!map.patch) {
      if (pass->first_tokens() == 0)
        throw SettingError("PatchMap", "names no patch, and no token stands for the whole image",
                           "give PatchMap::patch");
      return pass->map(map.layer, map.head, 0);
    }
    if (*map.patch >= grid.height * grid.width)
      throw SettingError(
          "PatchMap",
          fmt::format("names patch {} of {} by {}", *map.patch, grid.width, grid.height),
          "patches() has their numbers");
    return pass->map(map.layer, map.head, pass->first_tokens() + *map.patch);
  }
};

ImageTask::ImageTask(ImageEncoder& encoder, const Image& image, const ImageTaskOptions& options)
    : ImageTask(Work::of(encoder.impl_, image, options)) {}

ImageTask::ImageTask(ImageEncoder& encoder, const ApplicationBuffer& pixels, VkExtent2D size,
                     const ImageTaskOptions& options)
    : ImageTask(Work::of(encoder.impl_, pixels, size, options)) {}

ImageTask::ImageTask(std::unique_ptr<Work> work)
    : FrameTask(std::make_unique<Impl>(work->encoder->device, work->encoder,
                                       std::move(work->started), work->encoder->model)),
      work_(std::move(work)) {}

ImageTask::~ImageTask() = default;

VkExtent2D ImageTask::patches() const {
  return {work_->pass->grid().width, work_->pass->grid().height};
}

uint32_t ImageTask::layers() const { return work_->pass->layers(); }
uint32_t ImageTask::heads() const { return layers() > 0 ? work_->pass->heads() : 0; }
uint32_t ImageTask::vector_width() const { return work_->pass->vector().columns; }
uint32_t ImageTask::state_width() const { return work_->pass->states().columns; }
uint32_t ImageTask::tokens() const { return work_->pass->tokens(); }

bool ImageTask::recorded() const { return impl_->run.stages_recorded() == work_->pass->stages(); }

void ImageTask::require_recorded() const {
  impl_->device->require_alive();
  if (!recorded())
    throw SettingError("ImageTask", "has slices that were not recorded yet",
                       "record copies when recorded() says so");
}

void ImageTask::record_vector(VkCommandBuffer commands, const ApplicationBuffer& to) {
  require_recorded();
  record_copy(impl_->device->vk(), commands, impl_->device->queue_family(), work_->pass->vector(),
              to, "a vector");
}

void ImageTask::record_states(VkCommandBuffer commands, const ApplicationBuffer& to) {
  require_recorded();
  record_copy(impl_->device->vk(), commands, impl_->device->queue_family(), work_->pass->states(),
              to, "states");
}

void ImageTask::record_attention(VkCommandBuffer commands, const ApplicationImage& to,
                                 const PatchMap& map) {
  require_recorded();
  const PaddedRows rows = work_->rows(map);
  work_->images->record(commands, rows, to, "an attention map");
}

void ImageTask::record_attention(VkCommandBuffer commands, const ApplicationBuffer& to,
                                 const PatchMap& map) {
  require_recorded();
  record_copy(impl_->device->vk(), commands, impl_->device->queue_family(), work_->rows(map), to,
              "an attention map");
}

ImageVector ImageTask::result() {
  if (!done())
    throw SettingError("ImageTask", "is not done", "ask for its result when done() says so");
  ImageVector result;
  if (!recorded()) return result;  // the task was cancelled
  result.values = work_->pass->values();
  if (!std::ranges::all_of(result.values, [](float value) { return std::isfinite(value); }))
    throw ModelError("vector of an image", "holds NaN or infinity",
                     "ImageEncoder::embed() says where it comes from");
  result.complete = true;
  return result;
}

}  // namespace mulciber
