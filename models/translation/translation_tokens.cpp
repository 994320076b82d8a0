// Tokens of sources and translations.
#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "base/clock.h"
#include "checkpoints/json.h"
#include "models/generation/language_tokens.h"
#include "models/translation/translator_impl.h"
#include "mulciber/error.h"
#include "text/token_stream.h"

namespace mulciber {
namespace {

/// Tokens of the languages that options name.
struct SourceLanguages {
  std::optional<LanguageToken> from, to;

  SourceLanguages(const Tokenizer& tokenizer, const TranslateOptions& options)
      : from(token_of(tokenizer, options.source_language)),
        to(token_of(tokenizer, options.target_language)) {}

 private:
  static std::optional<LanguageToken> token_of(const Tokenizer& tokenizer,
                                               const std::string& language) {
    if (language.empty()) return std::nullopt;
    return language_token(tokenizer, language);
  }
};

std::vector<uint32_t> unsigned_ids(std::span<const int32_t> ids) {
  return {ids.begin(), ids.end()};
}

/// Ids that the encoder reads; none for a text without tokens.
std::vector<uint32_t> ids_of_source(const Tokenizer& tokenizer, const std::string& text,
                                    const SourceLanguages& languages) {
  if (tokenizer.encode(text, {.add_special = false, .parse_special = false}).empty()) return {};
  std::vector<int32_t> ids = tokenizer.encode(text, {.parse_special = false});
  if (languages.from) replace_language(tokenizer, ids, languages.from->id);
  if (languages.to && languages.to->before_source)
    ids.insert(ids.begin(), static_cast<int32_t>(languages.to->id));
  return unsigned_ids(ids);
}

std::string name_of_text(size_t index, size_t count) {
  return fmt::format("text {} of {}", index + 1, count);
}

bool has_id(const Tokenizer& tokenizer, uint32_t id) {
  return id < static_cast<uint32_t>(tokenizer.vocab_size());
}

}  // namespace

std::vector<std::string> pieces_of(const Tokenizer& tokenizer, std::span<const uint32_t> ids) {
  std::vector<std::string> result;
  for (const uint32_t id : ids)
    result.emplace_back(has_id(tokenizer, id) ? tokenizer.piece(static_cast<int32_t>(id)) : "");
  return result;
}

std::string text_of_ids(const Tokenizer& tokenizer, std::span<const uint32_t> ids) {
  std::vector<int32_t> known;
  for (const uint32_t id : ids)
    if (has_id(tokenizer, id)) known.push_back(static_cast<int32_t>(id));
  return written_text(tokenizer, known);
}

void Translator::Impl::take_source(Translation& result, const std::vector<uint32_t>& ids,
                                   size_t index, size_t count) {
  if (ids.empty()) {
    result.complete = true;
    return;
  }
  if (ids.size() > translation->max_source_tokens())
    throw ModelError(name_of_text(index, count),
                     fmt::format("has {} tokens, the model takes at most {}", ids.size(),
                                 translation->max_source_tokens()),
                     "split it into sentences");
  result.source_ids = ids;
  result.source_tokens = pieces_of(*tokenizers.source, ids);
  statistics.source_tokens += ids.size();
}

std::vector<std::vector<uint32_t>> Translator::Impl::tokenize(std::span<const std::string> texts,
                                                              std::vector<Translation>& results,
                                                              const TranslateOptions& options) {
  const auto start = Clock::now();
  const SourceLanguages languages(*tokenizers.source, options);
  std::vector<std::vector<uint32_t>> sources;
  for (size_t i = 0; i < texts.size(); ++i) {
    sources.push_back(ids_of_source(*tokenizers.source, texts[i], languages));
    take_source(results[i], sources[i], i, texts.size());
  }
  statistics.tokenize_seconds += seconds_since(start);
  return sources;
}

std::vector<std::vector<uint32_t>> Translator::Impl::take_ids(
    std::span<const std::vector<uint32_t>> sources, std::vector<Translation>& results,
    const TranslateOptions& options) {
  const SourceLanguages languages(*tokenizers.source, options);
  if (languages.from || (languages.to && languages.to->before_source))
    throw ModelError("languages", "have tokens before or behind a source, which is given as ids",
                     "put them among the ids, and leave the languages out");
  for (size_t i = 0; i < sources.size(); ++i) {
    for (const uint32_t id : sources[i])
      if (id >= translation->source_vocabulary())
        throw ModelError(name_of_text(i, sources.size()),
                         fmt::format("has the token id {}, the model's are below {}", id,
                                     translation->source_vocabulary()),
                         "take ids of this model's tokenizer");
    take_source(results[i], sources[i], i, sources.size());
  }
  return {sources.begin(), sources.end()};
}

std::vector<uint32_t> Translator::Impl::target_ids(const std::string& text) const {
  return unsigned_ids(tokenizers.target->encode(text, {.parse_special = false}));
}

const Tokenizer& Translator::Impl::tokenizer(TranslationSide side) const {
  return side == TranslationSide::kSource ? *tokenizers.source : *tokenizers.target;
}

std::vector<uint32_t> Translator::token_ids(const std::string& text, TranslationSide side,
                                            const TranslateOptions& options) const {
  if (side == TranslationSide::kTarget) return impl_->target_ids(text);
  const Tokenizer& tokenizer = *impl_->tokenizers.source;
  return ids_of_source(tokenizer, text, SourceLanguages(tokenizer, options));
}

std::vector<uint32_t> Translator::ids_of(std::span<const std::string> tokens,
                                         TranslationSide side) const {
  const Tokenizer& tokenizer = impl_->tokenizer(side);
  std::vector<uint32_t> ids;
  for (const std::string& token : tokens) {
    std::optional<int32_t> id = tokenizer.id(token);
    if (!id) id = tokenizer.special().unk;
    if (!id)
      throw ModelError(fmt::format("token '{}'", printable(token)),
                       "is no piece of the vocabulary, which has no unknown token",
                       "give pieces, or ids");
    ids.push_back(static_cast<uint32_t>(*id));
  }
  return ids;
}

std::vector<std::string> Translator::tokens_of(std::span<const uint32_t> ids,
                                               TranslationSide side) const {
  return pieces_of(impl_->tokenizer(side), ids);
}

std::string Translator::text_of(std::span<const uint32_t> ids, TranslationSide side) const {
  return text_of_ids(impl_->tokenizer(side), ids);
}

std::vector<std::string> Translator::languages() const {
  return known_languages(*impl_->tokenizers.source, std::numeric_limits<size_t>::max());
}

}  // namespace mulciber
