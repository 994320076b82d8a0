// C functions for models that match images with texts.
#include "mulciber/c/image_text_matcher.h"

#include <algorithm>

#include "capi/handles.h"
#include "capi/image_handles.h"
#include "capi/images.h"

namespace mulciber::c {
namespace {

struct ShownImageMatches {
  std::vector<ImageMatch> found;
  std::vector<MulciberImageMatch> list;
};

std::vector<std::string> texts_to_match(uint32_t count, const char* const* texts) {
  std::vector<std::string> copies;
  for (uint32_t i = 0; i < count; ++i)
    copies.emplace_back(&given_to(element_of(texts, i, "texts"), "texts"));
  return copies;
}

}  // namespace
}  // namespace mulciber::c

using namespace mulciber;
using namespace mulciber::c;

MulciberStatus mulciber_load_image_text_matcher(MulciberContext* context, MulciberDevice* device,
                                                const MulciberModel* model,
                                                const MulciberLoadInfo* info,
                                                MulciberImageTextMatcher** matcher) {
  return guarded(context, [&] {
    given_to(matcher, "matcher") = nullptr;
    *matcher = new MulciberImageTextMatcher{ImageTextMatcher(given_to(device, "device").device,
                                                             given_to(model, "model").model,
                                                             load_options(load_info(info)))};
  });
}

void mulciber_destroy_image_text_matcher(MulciberImageTextMatcher* matcher) { delete matcher; }

MulciberStatus mulciber_trim_image_text_matcher(MulciberContext* context,
                                                MulciberImageTextMatcher* matcher,
                                                uint64_t* freed) {
  return guarded(context, [&] {
    if (freed) *freed = 0;
    trim_image_model(given_to(matcher, "matcher").matcher, freed);
  });
}

MulciberStatus mulciber_describe_image_text_matcher(MulciberContext* context,
                                                    const MulciberImageTextMatcher* matcher,
                                                    MulciberImageTextMatcherReport* report) {
  return guarded(context, [&] {
    give(report, "MulciberImageTextMatcherReport", [&](MulciberImageTextMatcherReport& to) {
      const ImageTextMatcher& of = given_to(matcher, "matcher").matcher;
      const ImageExtents extents = of.extents();
      to.vector_width = extents.width;
      to.text_tokens = extents.text_tokens;
      to.probabilities_add_up = of.probabilities_add_up();
      to.image_width = extents.image_width;
      to.image_height = extents.image_height;
    });
  });
}

MulciberStatus mulciber_image_text_matcher_statistics(MulciberContext* context,
                                                      const MulciberImageTextMatcher* matcher,
                                                      MulciberImageStatistics* statistics) {
  return guarded(context, [&] {
    give_image_statistics(statistics, given_to(matcher, "matcher").matcher.statistics());
  });
}

MulciberStatus mulciber_match_images(MulciberContext* context, MulciberImageTextMatcher* matcher,
                                     uint32_t count, const MulciberImage* images,
                                     uint32_t text_count, const char* const* texts,
                                     const MulciberImageBatchInfo* info, MulciberResult** result,
                                     const MulciberImageMatch** matches) {
  return guarded(context, [&] {
    given_to(result, "result") = nullptr;
    given_to(matches, "matches") = nullptr;
    ImageTextMatcher& by = given_to(matcher, "matcher").matcher;
    auto shown = std::make_shared<ShownImageMatches>();
    shown->found = by.match(images_in_memory(count, images), texts_to_match(text_count, texts),
                            image_batch_options(info));
    for (const ImageMatch& found : shown->found)
      shown->list.push_back({.size = sizeof(MulciberImageMatch),
                             .complete = found.complete,
                             .best = found.best,
                             .text_count = static_cast<uint32_t>(found.logits.size()),
                             .probabilities = found.probabilities.data(),
                             .logits = found.logits.data()});
    *result = new MulciberResult{shown};
    *matches = shown->list.data();
  });
}

MulciberStatus mulciber_embed_matched_images(MulciberContext* context,
                                             MulciberImageTextMatcher* matcher, uint32_t count,
                                             const MulciberImage* images,
                                             const MulciberImageBatchInfo* info, float* vectors) {
  return guarded(context, [&] {
    ImageTextMatcher& by = given_to(matcher, "matcher").matcher;
    if (count > 0) given_to(vectors, "vectors");
    const uint32_t width = by.extents().width;
    for (const ImageVector& found :
         by.embed_images(images_in_memory(count, images), image_batch_options(info))) {
      if (found.complete)
        std::ranges::copy(found.values, vectors);
      else
        std::fill_n(vectors, width, 0.0f);
      vectors += width;
    }
  });
}

MulciberStatus mulciber_embed_matched_texts(MulciberContext* context,
                                            MulciberImageTextMatcher* matcher, uint32_t count,
                                            const char* const* texts, float* vectors) {
  return guarded(context, [&] {
    ImageTextMatcher& by = given_to(matcher, "matcher").matcher;
    if (count > 0) given_to(vectors, "vectors");
    for (const std::vector<float>& found : by.embed_texts(texts_to_match(count, texts)))
      vectors = std::ranges::copy(found, vectors).out;
  });
}
