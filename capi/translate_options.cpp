// Options of translations in the C interface.
#include "capi/translate_options.h"

#include <utility>

#include "capi/handles.h"
#include "capi/result.h"
#include "capi/structures.h"
#include "capi/texts_and_ids.h"

namespace mulciber::c {
namespace {

/// Options of searches, for all functions.
TranslateOptions options_of_search(const MulciberTranslateInfo& info) {
  TranslateOptions options;
  if (info.beams > 0) options.beams = info.beams;
  if (info.max_new_tokens > 0) options.max_new_tokens = info.max_new_tokens;
  if (info.set_length_penalty) options.length_penalty = info.length_penalty;
  if (info.set_early_stopping) options.early_stopping = info.early_stopping != 0;
  if (info.n_best > 0) options.n_best = info.n_best;
  if (info.source_language) options.source_language = info.source_language;
  if (info.target_language) options.target_language = info.target_language;
  options.banned_tokens = listed(info.banned_token_count, info.banned_tokens, "banned_tokens");
  options.banned_sequences =
      listed_sequences(info.banned_sequence_count, info.banned_sequences, "banned_sequences");
  options.head_masks = head_masks(info.head_masks);
  return options;
}

}  // namespace

HeadMasks head_masks(const MulciberHeadMasks* from) {
  const auto masks = optional_of_any_version(from, "MulciberHeadMasks");
  return {.encoder = listed(masks.encoder_count, masks.encoder, "encoder"),
          .decoder = listed(masks.decoder_count, masks.decoder, "decoder"),
          .cross = listed(masks.cross_count, masks.cross, "cross")};
}

TranslateOptions translate_options(const MulciberTranslateInfo& info) {
  TranslateOptions options = options_of_search(info);
  options.attention = info.attention != 0;
  if (info.batch_tokens > 0) options.batch_tokens = info.batch_tokens;
  if (info.batch_sentences > 0) options.batch_sentences = info.batch_sentences;
  if (info.on_progress)
    options.progress = [call = info.on_progress, user = info.user](size_t done, size_t total) {
      call(user, done, total);
    };
  options.cancel = cancel_flag(info.cancel);
  return options;
}

TranslateOptions search_options(const MulciberTranslateInfo& info) {
  for (const auto& [set, name] : {std::pair(info.attention != 0, "attention"),
                                  std::pair(info.batch_tokens > 0, "batch_tokens"),
                                  std::pair(info.batch_sentences > 0, "batch_sentences"),
                                  std::pair(info.on_progress != nullptr, "on_progress"),
                                  std::pair(info.cancel != nullptr, "cancel")})
    if (set)
      throw SettingError(std::string("MulciberTranslateInfo::") + name,
                         "is of mulciber_translate() alone", "leave it 0 or NULL");
  return options_of_search(info);
}

void require_no_text(const void* texts, const char* name) {
  if (texts)
    throw SettingError(name, "is given beside ids in its place", "give NULL for one of them");
}

}  // namespace mulciber::c
