// Translations as structures of the C interface.
#include "capi/shown_translations.h"

#include <utility>

#include "capi/texts_and_ids.h"

namespace mulciber::c {
namespace {

const float* floats_or_null(const std::vector<float>& values) {
  return values.empty() ? nullptr : values.data();
}

}  // namespace

ShownTranslations::ShownTranslations(std::vector<Translation> found) : found_(std::move(found)) {
  for (const Translation& translation : found_) list_.push_back(shown(translation));
}

const char* const* ShownTranslations::pointers(const std::vector<std::string>& texts) {
  return pointers_.emplace_back(text_pointers(texts)).data();
}

MulciberTranslation ShownTranslations::shown(const Translation& translation) {
  MulciberTranslation to = {};
  to.size = sizeof(to);
  to.complete = translation.complete;
  to.text = translation.text.c_str();
  to.score = translation.score;
  to.id_count = static_cast<uint32_t>(translation.ids.size());
  to.ids = translation.ids.data();
  to.tokens = pointers(translation.tokens);
  to.source_count = static_cast<uint32_t>(translation.source_ids.size());
  to.source_ids = translation.source_ids.data();
  to.source_tokens = pointers(translation.source_tokens);
  std::vector<MulciberAlternative>& alternatives = alternatives_.emplace_back();
  for (const Alternative& alternative : translation.alternatives)
    alternatives.push_back(shown(alternative));
  to.alternative_count = static_cast<uint32_t>(alternatives.size());
  to.alternatives = alternatives.data();
  if (translation.attention) to.attention = &attention_.emplace_back(shown(*translation.attention));
  return to;
}

MulciberAlternative ShownTranslations::shown(const Alternative& alternative) {
  MulciberAlternative to = {};
  to.size = sizeof(to);
  to.score = alternative.score;
  to.text = alternative.text.c_str();
  to.id_count = static_cast<uint32_t>(alternative.ids.size());
  to.ids = alternative.ids.data();
  to.tokens = pointers(alternative.tokens);
  return to;
}

MulciberTranslationAttention ShownTranslations::shown(const AttentionMaps& maps) const {
  MulciberTranslationAttention to = {};
  to.size = sizeof(to);
  to.encoder_layers = maps.encoder_layers;
  to.encoder_heads = maps.encoder_heads;
  to.decoder_layers = maps.decoder_layers;
  to.decoder_heads = maps.decoder_heads;
  to.cross_layers = maps.cross_layers;
  to.cross_heads = maps.cross_heads;
  to.source_length = maps.source_length;
  to.target_length = maps.target_length;
  to.encoder = floats_or_null(maps.encoder);
  to.decoder = floats_or_null(maps.decoder);
  to.cross = floats_or_null(maps.cross);
  return to;
}

}  // namespace mulciber::c
