// C functions for scores and tokens of translations.
#include "capi/handles.h"
#include "capi/result.h"
#include "capi/structures.h"
#include "capi/texts_and_ids.h"
#include "capi/translate_options.h"
#include "mulciber/c/translator.h"

namespace mulciber::c {
namespace {

struct ShownTranslationScores {
  std::vector<TranslationScore> found;
  std::vector<std::vector<std::string>> tokens;
  std::vector<std::vector<const char*>> token_lists;
  std::vector<MulciberTranslationScore> list;
};

struct ShownTranslationTokens {
  std::vector<uint32_t> ids;
  std::vector<std::string> tokens;
  std::vector<const char*> token_list;
  MulciberTranslationTokens shown;
};

TranslationSide translation_side(MulciberTranslationSide side) {
  switch (side) {
    case MULCIBER_TRANSLATION_SOURCE: return TranslationSide::kSource;
    case MULCIBER_TRANSLATION_TARGET: return TranslationSide::kTarget;
    default: refuse_enumerator("side", side, "MulciberTranslationSide");
  }
}

std::vector<TranslationScore> translation_scores(Translator& by, uint32_t count,
                                                 const char* const* sources,
                                                 const char* const* targets,
                                                 const MulciberTranslationScoreInfo& info) {
  const HeadMasks masks = head_masks(info.head_masks);
  if (!info.source_ids && !info.target_ids) {
    const std::vector<std::string> from = listed_texts(count, sources, "sources");
    return by.score(from, listed_texts(count, targets, "targets"), masks);
  }
  require_no_text(sources, "sources");
  require_no_text(targets, "targets");
  const std::vector<std::vector<uint32_t>> from =
      listed_sequences(count, info.source_ids, "source_ids");
  return by.score_ids(from, listed_sequences(count, info.target_ids, "target_ids"), masks);
}

}  // namespace
}  // namespace mulciber::c

using namespace mulciber;
using namespace mulciber::c;

MulciberStatus mulciber_score_translations(MulciberContext* context, MulciberTranslator* translator,
                                           uint32_t count, const char* const* sources,
                                           const char* const* targets,
                                           const MulciberTranslationScoreInfo* info,
                                           MulciberResult** result,
                                           const MulciberTranslationScore** scores) {
  return guarded(context, [&] {
    given_to(result, "result") = nullptr;
    given_to(scores, "scores") = nullptr;
    Translator& by = given_to(translator, "translator").translator;
    auto shown = std::make_shared<ShownTranslationScores>();
    shown->found = translation_scores(
        by, count, sources, targets, optional_of_any_version(info, "MulciberTranslationScoreInfo"));
    for (const TranslationScore& score : shown->found)
      shown->tokens.push_back(by.tokens_of(score.ids, TranslationSide::kTarget));
    for (const std::vector<std::string>& tokens : shown->tokens)
      shown->token_lists.push_back(text_pointers(tokens));
    for (size_t i = 0; i < shown->found.size(); ++i)
      shown->list.push_back(
          {.size = sizeof(MulciberTranslationScore),
           .id_count = shown->found[i].tokens,
           .log_probability = shown->found[i].log_probability,
           .ids = shown->found[i].ids.data(),
           .tokens = shown->token_lists[i].data(),
           .token_log_probabilities = shown->found[i].token_log_probabilities.data()});
    *result = new MulciberResult{shown};
    *scores = shown->list.data();
  });
}

MulciberStatus mulciber_translator_tokens(MulciberContext* context,
                                          const MulciberTranslator* translator,
                                          MulciberTranslationSide side, const char* text,
                                          const MulciberTranslateInfo* info,
                                          MulciberResult** result,
                                          const MulciberTranslationTokens** tokens) {
  return guarded(context, [&] {
    given_to(result, "result") = nullptr;
    given_to(tokens, "tokens") = nullptr;
    const Translator& by = given_to(translator, "translator").translator;
    const TranslationSide of = translation_side(side);
    const TranslateOptions options =
        translate_options(optional_of_any_version(info, "MulciberTranslateInfo"));
    auto shown = std::make_shared<ShownTranslationTokens>();
    shown->ids = by.token_ids(&given_to(text, "text"), of, options);
    shown->tokens = by.tokens_of(shown->ids, of);
    shown->token_list = text_pointers(shown->tokens);
    shown->shown = {.size = sizeof(MulciberTranslationTokens),
                    .count = static_cast<uint32_t>(shown->ids.size()),
                    .ids = shown->ids.data(),
                    .tokens = shown->token_list.data()};
    *result = new MulciberResult{shown};
    *tokens = &shown->shown;
  });
}

MulciberStatus mulciber_translator_ids(MulciberContext* context,
                                       const MulciberTranslator* translator,
                                       MulciberTranslationSide side, uint32_t count,
                                       const char* const* tokens, uint32_t* ids) {
  return guarded(context, [&] {
    const Translator& by = given_to(translator, "translator").translator;
    const TranslationSide of = translation_side(side);
    if (count == 0) return;
    given_to(ids, "ids");
    const std::vector<uint32_t> found = by.ids_of(listed_texts(count, tokens, "tokens"), of);
    std::copy(found.begin(), found.end(), ids);
  });
}

MulciberStatus mulciber_translator_text(MulciberContext* context,
                                        const MulciberTranslator* translator,
                                        MulciberTranslationSide side, uint32_t count,
                                        const uint32_t* ids, MulciberResult** result,
                                        const char** text) {
  return guarded(context, [&] {
    given_to(result, "result") = nullptr;
    given_to(text, "text") = nullptr;
    const Translator& by = given_to(translator, "translator").translator;
    const auto shown = std::make_shared<const std::string>(
        by.text_of(listed(count, ids, "ids"), translation_side(side)));
    *result = new MulciberResult{shown};
    *text = shown->c_str();
  });
}
