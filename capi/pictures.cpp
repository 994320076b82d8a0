// C functions for images.
#include "mulciber/mulciber_c_pictures.h"

#include "capi/handles.h"
#include "capi/structures.h"
#include "mulciber/image_encoder.h"
#include "mulciber/picture_task.h"

struct MulciberImageEncoder {
  mulciber::ImageEncoder encoder;
};

namespace mulciber::c {
namespace {

PictureTaskOptions picture_options(const MulciberPictureInfo* from) {
  PictureTaskOptions options;
  if (!from) return options;
  const auto info = of_any_version(from, "MulciberPictureInfo");
  if (info.mean) options.pooling = PicturePoolingChoice::kMean;
  options.normalize = info.normalize != 0;
  options.attention = info.attention != 0;
  return options;
}

Picture picture_of(const MulciberPicture* from) {
  const auto picture = of_any_version(from, "MulciberPicture");
  // The size is checked against the limit before any pixel is read.
  constexpr uint64_t kPixels = 1 << 26;
  const uint64_t pixels = uint64_t{picture.width} * picture.height;
  if (pixels == 0 || pixels > kPixels)
    throw SettingError("picture", fmt::format("has {} x {} pixels", picture.width, picture.height),
                       fmt::format("give one of 1 to {} pixels", kPixels));
  const uint8_t* rgb = &given_to(picture.rgb, "rgb");
  return {picture.width, picture.height, std::vector<uint8_t>(rgb, rgb + pixels * 3)};
}

MulciberTask* task_of(std::unique_ptr<PictureTask> made) {
  PictureTask* picture = made.get();
  return new MulciberTask{.task = std::move(made), .picture = picture};
}

PictureTask& picture_of(const MulciberTask* task) {
  return given_to(given_to(task, "task").picture, "the task's picture");
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

MulciberStatus mulciber_begin_picture(MulciberContext* context, MulciberImageEncoder* encoder,
                                      const MulciberPicture* picture,
                                      const MulciberPictureInfo* info, MulciberTask** task) {
  return guarded(context, [&] {
    given_to(task, "task") = nullptr;
    *task = task_of(std::make_unique<PictureTask>(given_to(encoder, "encoder").encoder,
                                                  picture_of(picture), picture_options(info)));
  });
}

MulciberStatus mulciber_begin_picture_of_pixels(
    MulciberContext* context, MulciberImageEncoder* encoder, const MulciberHostBuffer* pixels,
    const VkExtent2D* extent, const MulciberPictureInfo* info, MulciberTask** task) {
  return guarded(context, [&] {
    given_to(task, "task") = nullptr;
    *task = task_of(std::make_unique<PictureTask>(given_to(encoder, "encoder").encoder,
                                                  host_buffer(pixels), given_to(extent, "extent"),
                                                  picture_options(info)));
  });
}

MulciberStatus mulciber_describe_picture(MulciberContext* context, const MulciberTask* task,
                                         MulciberPictureReport* report) {
  return guarded(context, [&] {
    const PictureTask& of = picture_of(task);
    give(report, "MulciberPictureReport", [&](MulciberPictureReport& to) {
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
                                             const MulciberHostImage* image,
                                             const MulciberPatchMap* map) {
  return guarded(context, [&] {
    picture_of(task).record_attention(commands, host_image(image), patch_map(map));
  });
}

MulciberStatus mulciber_record_patches_buffer(MulciberContext* context, MulciberTask* task,
                                              VkCommandBuffer commands,
                                              const MulciberHostBuffer* buffer,
                                              const MulciberPatchMap* map) {
  return guarded(context, [&] {
    picture_of(task).record_attention(commands, host_buffer(buffer), patch_map(map));
  });
}
