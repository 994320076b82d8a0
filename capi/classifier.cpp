// C functions for text classification.
#include "mulciber/c/classifier.h"

#include "capi/handles.h"
#include "capi/result.h"
#include "capi/structures.h"
#include "capi/text_batches.h"
#include "capi/texts_and_ids.h"

struct MulciberClassifier {
  mulciber::Classifier classifier;
  std::vector<const char*> labels = {};  // of the classifier
};

namespace mulciber::c {
namespace {

struct ShownClassifications {
  std::vector<Classification> found;
  std::vector<MulciberClassification> list;
};

std::vector<ClassifierInput> classifier_inputs(uint32_t count, const char* const* texts,
                                               const char* const* pairs) {
  std::vector<ClassifierInput> inputs;
  for (std::string& text : listed_texts(count, texts, "texts"))
    inputs.push_back({std::move(text), std::nullopt});
  for (uint32_t i = 0; pairs && i < count; ++i)
    if (pairs[i]) inputs[i].pair = pairs[i];
  return inputs;
}

MulciberClassification shown_classification(const Classification& found) {
  MulciberClassification to = {};
  to.size = sizeof(to);
  to.complete = found.complete;
  if (!found.complete) return to;
  to.truncated = found.truncated;
  to.tokens = found.tokens;
  to.best = found.best;
  to.label_count = static_cast<uint32_t>(found.probabilities.size());
  to.probabilities = found.probabilities.data();
  to.logits = found.logits.data();
  return to;
}

}  // namespace
}  // namespace mulciber::c

using namespace mulciber;
using namespace mulciber::c;

MulciberStatus mulciber_load_classifier(MulciberContext* context, MulciberDevice* device,
                                        const MulciberModel* model, const MulciberLoadInfo* info,
                                        MulciberClassifier** classifier) {
  return guarded(context, [&] {
    given_to(classifier, "classifier") = nullptr;
    const auto& on = given_to(device, "device").device;
    const auto& of = given_to(model, "model").model;
    std::unique_ptr<MulciberClassifier> made(
        new MulciberClassifier{Classifier(on, of, load_options(load_info(info)))});
    made->labels = text_pointers(made->classifier.labels());
    *classifier = made.release();
  });
}

void mulciber_destroy_classifier(MulciberClassifier* classifier) { delete classifier; }

MulciberStatus mulciber_describe_classifier(MulciberContext* context,
                                            const MulciberClassifier* classifier,
                                            MulciberClassifierReport* report) {
  return guarded(context, [&] {
    give(report, "MulciberClassifierReport", [&](MulciberClassifierReport& to) {
      const MulciberClassifier& of = given_to(classifier, "classifier");
      to.several_labels = of.classifier.several_labels();
      to.max_tokens = of.classifier.max_tokens();
      to.label_count = static_cast<uint32_t>(of.labels.size());
      to.labels = of.labels.data();
    });
  });
}

MulciberStatus mulciber_classify(MulciberContext* context, MulciberClassifier* classifier,
                                 uint32_t count, const char* const* texts, const char* const* pairs,
                                 const MulciberClassifyInfo* from, MulciberResult** result,
                                 const MulciberClassification** classifications) {
  return guarded(context, [&] {
    given_to(result, "result") = nullptr;
    given_to(classifications, "classifications") = nullptr;
    Classifier& by = given_to(classifier, "classifier").classifier;
    const auto info = optional_of_any_version(from, "MulciberClassifyInfo");
    TextBatchOptions options = text_batch_options(info);
    options.truncate = info.refuse_long == 0;
    auto shown = std::make_shared<ShownClassifications>();
    shown->found = by.classify(classifier_inputs(count, texts, pairs), options);
    for (const Classification& found : shown->found)
      shown->list.push_back(shown_classification(found));
    *result = new MulciberResult{shown};
    *classifications = shown->list.data();
  });
}

MulciberStatus mulciber_classifier_statistics(MulciberContext* context,
                                              const MulciberClassifier* classifier,
                                              MulciberEncoderStatistics* statistics) {
  return guarded(context, [&] {
    give(statistics, "MulciberEncoderStatistics", [&](MulciberEncoderStatistics& to) {
      write_statistics(given_to(classifier, "classifier").classifier.statistics(), to);
    });
  });
}

MulciberStatus mulciber_trim_classifier(MulciberContext* context, MulciberClassifier* classifier,
                                        uint64_t* bytes) {
  return guarded(context, [&] {
    if (bytes) *bytes = 0;
    const uint64_t freed = given_to(classifier, "classifier").classifier.trim();
    if (bytes) *bytes = freed;
  });
}
