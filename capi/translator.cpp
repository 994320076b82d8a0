// C functions for translation.
#include "mulciber/c/translator.h"

#include "capi/handles.h"
#include "capi/result.h"
#include "capi/shown_translations.h"
#include "capi/structures.h"
#include "capi/texts_and_ids.h"
#include "capi/translate_options.h"

namespace mulciber::c {
namespace {

struct ShownBeams {
  std::vector<Beam> found;
  std::vector<MulciberBeam> list;
};

struct DescribedTranslator {
  std::string start_token;
  std::vector<std::string> languages;
  std::vector<const char*> language_list;
};

MulciberTranslateInfo translate_info(const MulciberTranslateInfo* from) {
  return optional_of_any_version(from, "MulciberTranslateInfo");
}

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

MulciberStatus mulciber_describe_translator(MulciberContext* context,
                                            const MulciberTranslator* translator,
                                            MulciberTranslatorReport* report) {
  return guarded(context, [&] {
    give(report, "MulciberTranslatorReport", [&](MulciberTranslatorReport& to) {
      const MulciberTranslator& of = given_to(translator, "translator");
      auto described = std::make_shared<DescribedTranslator>();
      described->start_token = of.translator.start_token();
      described->languages = of.translator.languages();
      described->language_list = text_pointers(described->languages);
      const ModelExtents extents = of.translator.extents();
      to.max_source_tokens = of.translator.max_source_tokens();
      to.encoder_layers = extents.encoder_layers;
      to.encoder_heads = extents.encoder_heads;
      to.decoder_layers = extents.decoder_layers;
      to.decoder_heads = extents.decoder_heads;
      to.cross_layers = extents.cross_layers;
      to.cross_heads = extents.cross_heads;
      to.language_count = static_cast<uint32_t>(described->languages.size());
      to.start_token = described->start_token.c_str();
      to.languages = described->language_list.data();
      of.described = std::move(described);
    });
  });
}

MulciberStatus mulciber_translate(MulciberContext* context, MulciberTranslator* translator,
                                  uint32_t count, const char* const* texts,
                                  const MulciberTranslateInfo* from, MulciberResult** result,
                                  const MulciberTranslation** translations) {
  return guarded(context, [&] {
    given_to(result, "result") = nullptr;
    given_to(translations, "translations") = nullptr;
    Translator& by = given_to(translator, "translator").translator;
    const MulciberTranslateInfo info = translate_info(from);
    const TranslateOptions options = translate_options(info);
    std::vector<Translation> found;
    if (info.source_ids) {
      require_no_text(texts, "texts");
      found = by.translate_ids(listed_sequences(count, info.source_ids, "source_ids"), options);
    } else {
      found = by.translate(listed_texts(count, texts, "texts"), options);
    }
    const auto shown = std::make_shared<ShownTranslations>(std::move(found));
    *result = new MulciberResult{shown};
    *translations = shown->list();
  });
}

MulciberStatus mulciber_translator_statistics(MulciberContext* context,
                                              const MulciberTranslator* translator,
                                              MulciberTranslateStatistics* statistics) {
  return guarded(context, [&] {
    give(statistics, "MulciberTranslateStatistics", [&](MulciberTranslateStatistics& to) {
      const TranslateStatistics& from = given_to(translator, "translator").translator.statistics();
      to.texts = from.texts;
      to.batches = from.batches;
      to.source_tokens = from.source_tokens;
      to.target_tokens = from.target_tokens;
      to.decoder_steps = from.decoder_steps;
      to.row_steps = from.row_steps;
      to.needed_row_steps = from.needed_row_steps;
      to.refills = from.refills;
      to.load_seconds = from.load_seconds;
      to.tokenize_seconds = from.tokenize_seconds;
      to.prepare_seconds = from.prepare_seconds;
      to.encode_seconds = from.encode_seconds;
      to.decode_seconds = from.decode_seconds;
      to.attention_seconds = from.attention_seconds;
      to.first_token_seconds = from.first_token_seconds;
      to.total_seconds = from.total_seconds;
      to.weight_bytes = from.weight_bytes;
      to.predicted_device_bytes = from.predicted_device_bytes;
      to.peak_device_bytes = from.peak_device_bytes;
    });
  });
}

MulciberStatus mulciber_begin_translation(MulciberContext* context, MulciberTranslator* translator,
                                          const char* text, const MulciberTranslateInfo* from,
                                          MulciberTask** task) {
  return guarded(context, [&] {
    given_to(task, "task") = nullptr;
    const MulciberTranslateInfo info = translate_info(from);
    if (info.source_ids)
      require_no_text(text, "text");
    else
      given_to(text, "text");
    Translator& by = given_to(translator, "translator").translator;
    const TranslateOptions options = search_options(info);
    auto made = info.source_ids
                    ? std::make_unique<TranslationTask>(
                          by, listed_sequences(1, info.source_ids, "source_ids").front(), options)
                    : std::make_unique<TranslationTask>(by, std::string(text), options);
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
