// C functions for translation.
#include "mulciber/c/translator.h"

#include "capi/handles.h"
#include "capi/structures.h"

namespace mulciber::c {
namespace {

struct ShownBeams {
  std::vector<Beam> found;
  std::vector<MulciberBeam> list;
};

}  // namespace
}  // namespace mulciber::c

using namespace mulciber;
using namespace mulciber::c;

MulciberStatus mulciber_load_translator(MulciberContext* context, MulciberDevice* device,
                                        const MulciberModel* model, const MulciberLoadInfo* info,
                                        MulciberTranslator** translator) {
  return guarded(context, [&] {
    given_to(translator, "translator") = nullptr;
    *translator = new MulciberTranslator{Translator(given_to(device, "device").device,
                                                    given_to(model, "model").model,
                                                    load_options(load_info(info)))};
  });
}

void mulciber_destroy_translator(MulciberTranslator* translator) { delete translator; }

MulciberStatus mulciber_trim(MulciberContext* context, MulciberTranslator* translator) {
  return guarded(context, [&] { given_to(translator, "translator").translator.trim(); });
}

MulciberStatus mulciber_begin_translation(MulciberContext* context, MulciberTranslator* translator,
                                          const char* text, const MulciberTranslateInfo* from,
                                          MulciberTask** task) {
  return guarded(context, [&] {
    given_to(task, "task") = nullptr;
    given_to(text, "text");
    auto made = std::make_unique<TranslationTask>(given_to(translator, "translator").translator,
                                                  text, translate_options(from));
    TranslationTask* translation = made.get();
    *task = new MulciberTask{.task = std::move(made), .translation = translation};
  });
}

MulciberStatus mulciber_beams(MulciberContext* context, MulciberTask* task, uint32_t* count,
                              const MulciberBeam** beams) {
  return guarded(context, [&] {
    given_to(count, "count") = 0;
    given_to(beams, "beams") = nullptr;
    MulciberTask& of = given_to(task, "task");
    auto shown = std::make_shared<ShownBeams>();
    shown->found =
        part_of(of, &MulciberTask::translation, "beams", "mulciber_begin_translation").beams();
    for (const Beam& beam : shown->found)
      shown->list.push_back({.size = sizeof(MulciberBeam),
                             .finished = beam.finished,
                             .text = beam.text.c_str(),
                             .score = beam.score,
                             .id_count = static_cast<uint32_t>(beam.ids.size()),
                             .ids = beam.ids.data()});
    *count = static_cast<uint32_t>(shown->list.size());
    *beams = shown->list.data();
    of.shown = std::move(shown);
  });
}
