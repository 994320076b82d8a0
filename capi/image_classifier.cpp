// C functions for image classification.
#include "mulciber/c/image_classifier.h"

#include "capi/handles.h"
#include "capi/image_handles.h"
#include "capi/images.h"

namespace mulciber::c {
namespace {

struct ShownImageLabels {
  std::vector<ImageLabels> found;
  std::vector<MulciberImageLabels> list;
};

}  // namespace
}  // namespace mulciber::c

using namespace mulciber;
using namespace mulciber::c;

MulciberStatus mulciber_load_image_classifier(MulciberContext* context, MulciberDevice* device,
                                              const MulciberModel* model,
                                              const MulciberLoadInfo* info,
                                              MulciberImageClassifier** classifier) {
  return guarded(context, [&] {
    given_to(classifier, "classifier") = nullptr;
    *classifier = new MulciberImageClassifier(ImageClassifier(given_to(device, "device").device,
                                                              given_to(model, "model").model,
                                                              load_options(load_info(info))));
  });
}

void mulciber_destroy_image_classifier(MulciberImageClassifier* classifier) { delete classifier; }

MulciberStatus mulciber_trim_image_classifier(MulciberContext* context,
                                              MulciberImageClassifier* classifier,
                                              uint64_t* freed) {
  return guarded(context, [&] {
    if (freed) *freed = 0;
    trim_image_model(given_to(classifier, "classifier").classifier, freed);
  });
}

MulciberStatus mulciber_describe_image_classifier(MulciberContext* context,
                                                  const MulciberImageClassifier* classifier,
                                                  MulciberImageClassifierReport* report) {
  return guarded(context, [&] {
    give(report, "MulciberImageClassifierReport", [&](MulciberImageClassifierReport& to) {
      const MulciberImageClassifier& of = given_to(classifier, "classifier");
      const ImageExtents extents = of.classifier.extents();
      to.several_labels = of.classifier.several_labels();
      to.label_count = static_cast<uint32_t>(of.labels.size());
      to.labels = of.labels.data();
      to.image_width = extents.image_width;
      to.image_height = extents.image_height;
      to.layers = extents.layers;
      to.heads = extents.heads;
    });
  });
}

MulciberStatus mulciber_image_classifier_statistics(MulciberContext* context,
                                                    const MulciberImageClassifier* classifier,
                                                    MulciberImageStatistics* statistics) {
  return guarded(context, [&] {
    give_image_statistics(statistics, given_to(classifier, "classifier").classifier.statistics());
  });
}

MulciberStatus mulciber_classify_images(MulciberContext* context,
                                        MulciberImageClassifier* classifier, uint32_t count,
                                        const MulciberImage* images,
                                        const MulciberImageBatchInfo* info, MulciberResult** result,
                                        const MulciberImageLabels** labels) {
  return guarded(context, [&] {
    given_to(result, "result") = nullptr;
    given_to(labels, "labels") = nullptr;
    auto shown = std::make_shared<ShownImageLabels>();
    shown->found =
        given_to(classifier, "classifier")
            .classifier.classify(images_in_memory(count, images), image_batch_options(info));
    for (const ImageLabels& found : shown->found)
      shown->list.push_back({.size = sizeof(MulciberImageLabels),
                             .complete = found.complete,
                             .best = found.best,
                             .label_count = static_cast<uint32_t>(found.logits.size()),
                             .probabilities = found.probabilities.data(),
                             .logits = found.logits.data()});
    *result = new MulciberResult{shown};
    *labels = shown->list.data();
  });
}

MulciberStatus mulciber_image_classifier_attention(MulciberContext* context,
                                                   MulciberImageClassifier* classifier,
                                                   const MulciberImage* image,
                                                   MulciberResult** result,
                                                   const MulciberImageAttention** attention) {
  return guarded(context, [&] {
    given_to(result, "result") = nullptr;
    given_to(attention, "attention") = nullptr;
    auto shown = std::make_shared<ShownImageAttention>();
    shown->found = given_to(classifier, "classifier").classifier.attention(image_in_memory(image));
    *result = new MulciberResult{shown};
    *attention = shown->show();
  });
}
