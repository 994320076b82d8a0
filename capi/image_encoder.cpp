// C functions for vision transformers.
#include <algorithm>

#include "capi/handles.h"
#include "capi/image_handles.h"
#include "capi/images.h"
#include "mulciber/c/image_task.h"
#include "mulciber/image_task.h"

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

/// What was found beside embeddings, and its form in C.
struct ShownEmbeddings {
  std::vector<ImageStates> states;
  std::vector<ShownImageAttention> attention;
  std::vector<MulciberImageEmbedding> list;
};

/// The parts of a mulciber_embed_images() call, each of which goes through all images.
class EmbeddingParts {
 public:
  EmbeddingParts(ImageEncoder& encoder, uint32_t count, const MulciberImage* images,
                 const MulciberImageInfo& info, bool vectors)
      : encoder_(encoder),
        images_(images_in_memory(count, images)),
        complete_(count, true),
        total_((vectors + (info.states != 0) + (info.attention != 0)) * size_t{count}),
        progress_(image_progress(info.on_progress, info.user)) {
    if (info.batch_images > 0) batch_.batch_images = info.batch_images;
    batch_.cancel = cancel_flag(info.cancel);
    if (progress_)
      batch_.progress = [this](size_t done, size_t) { progress_(before_ + done, total_); };
  }

  void embed(const MulciberImageInfo& info, float* vectors) {
    const ImageExtents extents = encoder_.extents();
    const size_t width = info.mean ? extents.state_width : extents.width;
    const std::vector<ImageVector> found = encoder_.embed(
        images_, {.pooling = info.mean ? ImagePoolingChoice::kMean : ImagePoolingChoice::kModel,
                  .normalize = info.normalize != 0,
                  .batch = batch_});
    for (size_t i = 0; i < found.size(); ++i, vectors += width) {
      if (found[i].complete)
        std::ranges::copy(found[i].values, vectors);
      else
        std::fill_n(vectors, width, 0.0f);
      if (!found[i].complete) complete_[i] = false;
    }
    before_ += images_.size();
  }

  std::vector<ImageStates> states() {
    std::vector<ImageStates> found = encoder_.states(images_, batch_);
    for (size_t i = 0; i < found.size(); ++i)
      if (!found[i].complete) complete_[i] = false;
    before_ += images_.size();
    return found;
  }

  std::vector<ShownImageAttention> attention() {
    std::vector<ShownImageAttention> found(images_.size());
    for (size_t i = 0; i < found.size(); ++i) {
      if (batch_.cancel && batch_.cancel->load()) {
        std::fill(complete_.begin() + static_cast<std::ptrdiff_t>(i), complete_.end(), false);
        break;
      }
      found[i].found = encoder_.attention(images_[i]);
      if (progress_) progress_(before_ + i + 1, total_);
    }
    before_ += images_.size();
    return found;
  }

  const std::vector<bool>& complete() const { return complete_; }

 private:
  ImageEncoder& encoder_;
  std::vector<Image> images_;
  std::vector<bool> complete_;  // whether every part so far has reached an image
  size_t before_ = 0, total_;   // images of the parts that ended, and of all parts
  std::function<void(size_t done, size_t total)> progress_;
  ImageBatchOptions batch_;
};

void show_embeddings(ShownEmbeddings& shown, const std::vector<bool>& complete) {
  for (size_t i = 0; i < complete.size(); ++i) {
    MulciberImageEmbedding embedding = {.size = sizeof(MulciberImageEmbedding),
                                        .complete = complete[i],
                                        .tokens = 0,
                                        .state_width = 0,
                                        .rows = 0,
                                        .columns = 0,
                                        .states = nullptr,
                                        .attention = nullptr};
    if (complete[i] && !shown.states.empty()) {
      const ImageStates& states = shown.states[i];
      embedding.tokens = states.tokens;
      embedding.state_width = states.width;
      embedding.rows = states.rows;
      embedding.columns = states.columns;
      embedding.states = states.values.data();
    }
    if (complete[i] && !shown.attention.empty()) embedding.attention = shown.attention[i].show();
    shown.list.push_back(embedding);
  }
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

MulciberStatus mulciber_trim_image_encoder(MulciberContext* context, MulciberImageEncoder* encoder,
                                           uint64_t* freed) {
  return guarded(context, [&] {
    if (freed) *freed = 0;
    trim_image_model(given_to(encoder, "encoder").encoder, freed);
  });
}

MulciberStatus mulciber_describe_image_encoder(MulciberContext* context,
                                               const MulciberImageEncoder* encoder,
                                               MulciberImageEncoderReport* report) {
  return guarded(context, [&] {
    give(report, "MulciberImageEncoderReport", [&](MulciberImageEncoderReport& to) {
      const ImageExtents extents = given_to(encoder, "encoder").encoder.extents();
      to.vector_width = extents.width;
      to.state_width = extents.state_width;
      to.image_width = extents.image_width;
      to.image_height = extents.image_height;
      to.any_size = extents.any_size;
      to.patch = extents.patch;
      to.first_tokens = extents.first_tokens;
      to.layers = extents.layers;
      to.heads = extents.heads;
      to.text_tokens = extents.text_tokens;
    });
  });
}

MulciberStatus mulciber_image_encoder_statistics(MulciberContext* context,
                                                 const MulciberImageEncoder* encoder,
                                                 MulciberImageStatistics* statistics) {
  return guarded(context, [&] {
    give_image_statistics(statistics, given_to(encoder, "encoder").encoder.statistics());
  });
}

MulciberStatus mulciber_embed_images(MulciberContext* context, MulciberImageEncoder* encoder,
                                     uint32_t count, const MulciberImage* images,
                                     const MulciberImageInfo* from, float* vectors,
                                     MulciberResult** result,
                                     const MulciberImageEmbedding** embeddings) {
  return guarded(context, [&] {
    if (result) *result = nullptr;
    if (embeddings) *embeddings = nullptr;
    ImageEncoder& by = given_to(encoder, "encoder").encoder;
    const auto info = optional_of_any_version(from, "MulciberImageInfo");
    const bool listed = info.states != 0 || info.attention != 0 || result || embeddings;
    if (listed) given_to(result, "result"), given_to(embeddings, "embeddings");
    if (count > 0 && !info.states && !info.attention) given_to(vectors, "vectors");
    EmbeddingParts parts(by, count, images, info, vectors != nullptr);
    if (vectors) parts.embed(info, vectors);
    if (!listed) return;
    auto shown = std::make_shared<ShownEmbeddings>();
    if (info.states) shown->states = parts.states();
    if (info.attention) shown->attention = parts.attention();
    show_embeddings(*shown, parts.complete());
    *result = new MulciberResult{shown};
    *embeddings = shown->list.data();
  });
}

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
      *task = task_of(std::make_unique<ImageTask>(by, image_in_memory(image), image_options(info)));
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
