// C functions for optical character recognition.
#include "mulciber/c/image_text_reader.h"

#include "capi/handles.h"
#include "capi/image_handles.h"
#include "capi/images.h"

namespace mulciber::c {
namespace {

/// The text of an image, and its form in C, which points into this object.
struct ShownImageText {
  ImageText found;
  std::vector<const char*> tokens = {};
  MulciberImage seen = {};

  MulciberImageText show() {
    for (const std::string& token : found.tokens) tokens.push_back(token.c_str());
    const bool mapped = found.layers > 0;
    if (mapped) seen = shown_image(found.seen);
    return {.size = sizeof(MulciberImageText),
            .complete = found.complete,
            .text = found.text.c_str(),
            .log_probability = found.log_probability,
            .id_count = static_cast<uint32_t>(found.ids.size()),
            .ids = found.ids.data(),
            .tokens = tokens.data(),
            .layers = found.layers,
            .heads = found.heads,
            .rows = found.rows,
            .columns = found.columns,
            .maps = mapped ? found.maps.data() : nullptr,
            .seen = mapped ? &seen : nullptr};
  }
};

struct ShownImageTexts {
  std::vector<ShownImageText> texts;
  std::vector<MulciberImageText> list;
};

ImageReadOptions image_read_options(const MulciberReadTextInfo* from) {
  const auto info = optional_of_any_version(from, "MulciberReadTextInfo");
  ImageReadOptions options;
  if (info.beams > 0) options.beams = info.beams;
  options.max_tokens = info.max_tokens;
  options.attention = info.attention != 0;
  options.progress = image_progress(info.on_progress, info.user);
  options.cancel = cancel_flag(info.cancel);
  return options;
}

}  // namespace
}  // namespace mulciber::c

using namespace mulciber;
using namespace mulciber::c;

MulciberStatus mulciber_load_image_text_reader(MulciberContext* context, MulciberDevice* device,
                                               const MulciberModel* model,
                                               const MulciberLoadInfo* info,
                                               MulciberImageTextReader** reader) {
  return guarded(context, [&] {
    given_to(reader, "reader") = nullptr;
    *reader = new MulciberImageTextReader{ImageTextReader(given_to(device, "device").device,
                                                          given_to(model, "model").model,
                                                          load_options(load_info(info)))};
  });
}

void mulciber_destroy_image_text_reader(MulciberImageTextReader* reader) { delete reader; }

MulciberStatus mulciber_trim_image_text_reader(MulciberContext* context,
                                               MulciberImageTextReader* reader, uint64_t* freed) {
  return guarded(context, [&] {
    if (freed) *freed = 0;
    trim_image_model(given_to(reader, "reader").reader, freed);
  });
}

MulciberStatus mulciber_image_text_reader_statistics(MulciberContext* context,
                                                     const MulciberImageTextReader* reader,
                                                     MulciberImageStatistics* statistics) {
  return guarded(context, [&] {
    give_image_statistics(statistics, given_to(reader, "reader").reader.statistics());
  });
}

MulciberStatus mulciber_read_image_texts(MulciberContext* context, MulciberImageTextReader* reader,
                                         uint32_t count, const MulciberImage* images,
                                         const MulciberReadTextInfo* info, MulciberResult** result,
                                         const MulciberImageText** texts) {
  return guarded(context, [&] {
    given_to(result, "result") = nullptr;
    given_to(texts, "texts") = nullptr;
    ImageTextReader& by = given_to(reader, "reader").reader;
    auto shown = std::make_shared<ShownImageTexts>();
    for (ImageText& found : by.read(images_in_memory(count, images), image_read_options(info)))
      shown->texts.push_back({.found = std::move(found)});
    for (ShownImageText& text : shown->texts) shown->list.push_back(text.show());
    *result = new MulciberResult{shown};
    *texts = shown->list.data();
  });
}
