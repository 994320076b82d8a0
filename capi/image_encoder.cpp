// C functions for images.
#include "mulciber/c/image_task.h"

#include "capi/handles.h"
#include "capi/image_pixels.h"
#include "capi/structures.h"
#include "mulciber/image_encoder.h"
#include "mulciber/image_task.h"

struct MulciberImageEncoder {
  mulciber::ImageEncoder encoder;
};

namespace mulciber::c {
namespace {

ImageTaskOptions image_options(const MulciberImageInfo* from) {
  ImageTaskOptions options;
  if (!from) return options;
  const auto info = of_any_version(from, "MulciberImageInfo");
  if (info.mean) options.pooling = ImagePoolingChoice::kMean;
  options.normalize = info.normalize != 0;
  options.attention = info.attention != 0;
  return options;
}

MulciberTask* task_of(std::unique_ptr<ImageTask> made) {
  ImageTask* image = made.get();
  return new MulciberTask{.task = std::move(made), .image = image};
}

ImageTask& image_of(const MulciberTask* task) {
  return part_of(given_to(task, "task"), &MulciberTask::image, "patches", "mulciber_begin_image");
}

PatchMap patch_map(const MulciberPatchMap* from) {
  const auto map = of_any_version(from, "MulciberPatchMap");
  PatchMap result = {.layer = map.layer, .head = map.head, .patch = {}};
  if (map.of_patch) result.patch = map.patch;
  return result;
}

}  // namespace
}  // namespace mulciber::c

using namespace mulciber;
using namespace mulciber::c;

MulciberStatus mulciber_load_image_encoder(MulciberContext* context, MulciberDevice* device,
                                           const MulciberModel* model, const MulciberLoadInfo* info,
                                           MulciberImageEncoder** encoder) {
  return guarded(context, [&] {
    given_to(encoder, "encoder") = nullptr;
    *encoder = new MulciberImageEncoder{ImageEncoder(given_to(device, "device").device,
                                                     given_to(model, "model").model,
                                                     load_options(load_info(info)))};
  });
}

void mulciber_destroy_image_encoder(MulciberImageEncoder* encoder) { delete encoder; }

MulciberStatus mulciber_begin_image(MulciberContext* context, MulciberImageEncoder* encoder,
                                    const MulciberImage* image, const MulciberImageInfo* info,
                                    MulciberTask** task) {
  return guarded(context, [&] {
    given_to(task, "task") = nullptr;
    ImageEncoder& by = given_to(encoder, "encoder").encoder;
    const auto given = of_any_version(image, "MulciberImage");
    if (given.rgb && given.pixels)
      throw SettingError("image", "has rgb and pixels", "give NULL for one of them");
    if (given.pixels)
      *task = task_of(std::make_unique<ImageTask>(by, application_buffer(given.pixels),
                                                  VkExtent2D{given.width, given.height},
                                                  image_options(info)));
    else
      *task = task_of(std::make_unique<ImageTask>(by, image_in_memory(given), image_options(info)));
  });
}

MulciberStatus mulciber_describe_image(MulciberContext* context, const MulciberTask* task,
                                       MulciberImageReport* report) {
  return guarded(context, [&] {
    const ImageTask& of = image_of(task);
    give(report, "MulciberImageReport", [&](MulciberImageReport& to) {
      to.patches = of.patches();
      to.vector_width = of.vector_width();
      to.state_width = of.state_width();
      to.tokens = of.tokens();
      to.layers = of.layers();
      to.heads = of.heads();
    });
  });
}

MulciberStatus mulciber_record_patches_image(MulciberContext* context, MulciberTask* task,
                                             VkCommandBuffer commands,
                                             const MulciberApplicationImage* image,
                                             const MulciberPatchMap* map) {
  return guarded(context, [&] {
    image_of(task).record_attention(given_handle(commands, "commands"), application_image(image),
                                    patch_map(map));
  });
}

MulciberStatus mulciber_record_patches_buffer(MulciberContext* context, MulciberTask* task,
                                              VkCommandBuffer commands,
                                              const MulciberApplicationBuffer* buffer,
                                              const MulciberPatchMap* map) {
  return guarded(context, [&] {
    image_of(task).record_attention(given_handle(commands, "commands"), application_buffer(buffer),
                                    patch_map(map));
  });
}

// Deprecated names of version 0.1.

MulciberStatus mulciber_begin_picture(MulciberContext* context, MulciberImageEncoder* encoder,
                                      const MulciberImage* image, const MulciberImageInfo* info,
                                      MulciberTask** task) {
  return mulciber_begin_image(context, encoder, image, info, task);
}

MulciberStatus mulciber_describe_picture(MulciberContext* context, const MulciberTask* task,
                                         MulciberImageReport* report) {
  return mulciber_describe_image(context, task, report);
}

MulciberStatus mulciber_begin_picture_of_pixels(MulciberContext* context,
                                                MulciberImageEncoder* encoder,
                                                const MulciberApplicationBuffer* pixels,
                                                const VkExtent2D* extent,
                                                const MulciberImageInfo* info,
                                                MulciberTask** task) {
  MulciberImage image = {sizeof(image)};
  const MulciberStatus status = guarded(context, [&] {
    given_to(task, "task") = nullptr;
    image.width = given_to(extent, "extent").width;
    image.height = extent->height;
    image.pixels = &given_to(pixels, "pixels");
  });
  if (status != MULCIBER_OK) return status;
  return mulciber_begin_image(context, encoder, &image, info, task);
}
