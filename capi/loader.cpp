// C functions for incremental loading.
#include "mulciber/c/loader.h"

#include "capi/handles.h"
#include "capi/image_handles.h"
#include "capi/speech_handles.h"
#include "capi/structures.h"
#include "mulciber/model_loader.h"

struct MulciberLoader {
  mulciber::ModelLoader loader;
};

using namespace mulciber;
using namespace mulciber::c;

MulciberStatus mulciber_begin_load(MulciberContext* context, MulciberDevice* device,
                                   const MulciberModel* model, const MulciberLoadInfo* from,
                                   MulciberLoader** loader) {
  return guarded(context, [&] {
    given_to(loader, "loader") = nullptr;
    const GeneratorOptions options = generator_options(load_info(from));
    *loader = new MulciberLoader{
        ModelLoader(given_to(device, "device").device, given_to(model, "model").model, options)};
  });
}

MulciberStatus mulciber_step_load(MulciberContext* context, MulciberLoader* loader, uint64_t bytes,
                                  MulciberLoadProgress* progress) {
  return guarded(context, [&] {
    const ModelLoader::Progress now = given_to(loader, "loader").loader.step(bytes);
    if (!progress) return;
    give(progress, "MulciberLoadProgress", [&](MulciberLoadProgress& to) {
      to.complete = now.complete;
      to.done = now.done;
      to.total = now.total;
    });
  });
}

MulciberStatus mulciber_finish_translator(MulciberContext* context, MulciberLoader* loader,
                                          MulciberTranslator** translator) {
  return guarded(context, [&] {
    given_to(translator, "translator") = nullptr;
    *translator = new MulciberTranslator{given_to(loader, "loader").loader.translator()};
  });
}

MulciberStatus mulciber_finish_generator(MulciberContext* context, MulciberLoader* loader,
                                         MulciberGenerator** generator) {
  return guarded(context, [&] {
    given_to(generator, "generator") = nullptr;
    *generator = new MulciberGenerator{given_to(loader, "loader").loader.generator()};
  });
}

MulciberStatus mulciber_finish_text_encoder(MulciberContext* context, MulciberLoader* loader,
                                            MulciberTextEncoder** encoder) {
  return guarded(context, [&] {
    given_to(encoder, "encoder") = nullptr;
    *encoder = new MulciberTextEncoder{given_to(loader, "loader").loader.text_encoder()};
  });
}

MulciberStatus mulciber_finish_image_encoder(MulciberContext* context, MulciberLoader* loader,
                                             MulciberImageEncoder** encoder) {
  return guarded(context, [&] {
    given_to(encoder, "encoder") = nullptr;
    *encoder = new MulciberImageEncoder{given_to(loader, "loader").loader.image_encoder()};
  });
}

MulciberStatus mulciber_finish_image_classifier(MulciberContext* context, MulciberLoader* loader,
                                                MulciberImageClassifier** classifier) {
  return guarded(context, [&] {
    given_to(classifier, "classifier") = nullptr;
    *classifier = new MulciberImageClassifier(given_to(loader, "loader").loader.image_classifier());
  });
}

MulciberStatus mulciber_finish_image_text_matcher(MulciberContext* context, MulciberLoader* loader,
                                                  MulciberImageTextMatcher** matcher) {
  return guarded(context, [&] {
    given_to(matcher, "matcher") = nullptr;
    *matcher = new MulciberImageTextMatcher{given_to(loader, "loader").loader.image_text_matcher()};
  });
}

MulciberStatus mulciber_finish_image_text_reader(MulciberContext* context, MulciberLoader* loader,
                                                 MulciberImageTextReader** reader) {
  return guarded(context, [&] {
    given_to(reader, "reader") = nullptr;
    *reader = new MulciberImageTextReader{given_to(loader, "loader").loader.image_text_reader()};
  });
}

MulciberStatus mulciber_finish_transcriber(MulciberContext* context, MulciberLoader* loader,
                                           MulciberTranscriber** transcriber) {
  return guarded(context, [&] {
    given_to(transcriber, "transcriber") = nullptr;
    *transcriber = new MulciberTranscriber(given_to(loader, "loader").loader.transcriber());
  });
}

void mulciber_destroy_loader(MulciberLoader* loader) { delete loader; }

// Deprecated names of version 0.1.

MulciberStatus mulciber_begin_load_adapted(MulciberContext* context, MulciberDevice* device,
                                           const MulciberModel* model, const MulciberLoadInfo* from,
                                           uint32_t count, const MulciberAdapter* adapters,
                                           VkBool32 merge, MulciberLoader** loader) {
  MulciberLoadInfo info = {};
  const MulciberStatus status = guarded(context, [&] {
    given_to(loader, "loader") = nullptr;
    info = load_info(from);
  });
  if (status != MULCIBER_OK) return status;
  info.size = sizeof(info);
  info.adapters = adapters;
  info.adapter_count = count;
  info.merge_adapters = merge;
  return mulciber_begin_load(context, device, model, &info, loader);
}
