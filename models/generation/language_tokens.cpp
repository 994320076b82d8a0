#include "models/generation/language_tokens.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "mulciber/error.h"

namespace mulciber {
namespace {

bool framed(std::string_view piece, std::string_view before, std::string_view after) {
  return piece.size() > before.size() + after.size() && piece.starts_with(before) &&
         piece.ends_with(after);
}

bool is_before_source(std::string_view piece) { return framed(piece, ">>", "<<"); }

/// Whether a special token looks like a language: "__de__", "deu_Latn", "de_DE".
bool is_language(const Tokenizer& tokenizer, int32_t id) {
  if (!tokenizer.is_special(id)) return false;
  const std::string_view piece = tokenizer.piece(id);
  if (framed(piece, "__", "__")) return true;
  const size_t bar = piece.find('_');
  const auto is_lower = [](char c) { return c >= 'a' && c <= 'z'; };
  return (bar == 2 || bar == 3) && piece.size() > bar + 1 &&
         std::all_of(piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(bar), is_lower);
}

/// The language token that the tokenizer itself adds to a text.
std::optional<int32_t> added_language(const Tokenizer& tokenizer) {
  for (const int32_t id : tokenizer.encode(""))
    if (is_language(tokenizer, id)) return id;
  return std::nullopt;
}

}  // namespace

LanguageToken language_token(const Tokenizer& tokenizer, const std::string& language) {
  for (const std::string& piece : {language, fmt::format("__{}__", language)}) {
    const std::optional<int32_t> id = tokenizer.id(piece);
    if (id && is_language(tokenizer, *id)) return {static_cast<uint32_t>(*id), false};
  }
  if (const std::optional<int32_t> id = tokenizer.id(fmt::format(">>{}<<", language)))
    return {static_cast<uint32_t>(*id), true};

  constexpr size_t kNamed = 12;
  std::vector<std::string> known = known_languages(tokenizer, kNamed + 1);
  const std::string where = fmt::format("language '{}'", language);
  if (known.empty())
    throw ModelError(where, "cannot be chosen: the model's vocabulary has no token for a language",
                     "leave it out");
  const bool more = known.size() > kNamed;
  if (more) known.pop_back();
  throw ModelError(where, "is none that the model's vocabulary has a token for",
                   fmt::format("it has: {}{}", fmt::join(known, ", "), more ? ", ..." : ""));
}

std::vector<std::string> known_languages(const Tokenizer& tokenizer, size_t most) {
  std::vector<std::string> known;
  for (int32_t id = 0; id < tokenizer.vocab_size() && known.size() < most; ++id) {
    std::string_view piece = tokenizer.piece(id);
    if (!is_before_source(piece) && !is_language(tokenizer, id)) continue;
    if (framed(piece, "__", "__") || is_before_source(piece))
      piece = piece.substr(2, piece.size() - 4);
    known.emplace_back(piece);
  }
  return known;
}

void replace_language(const Tokenizer& tokenizer, std::vector<int32_t>& ids, uint32_t language) {
  const std::optional<int32_t> added = added_language(tokenizer);
  if (!added)
    throw ModelError(
        "source language",
        "cannot be chosen: the model's tokenizer tells a source's language by no token",
        "leave it out");
  // The text was encoded without parsing special tokens, so that only one id is replaced.
  std::replace(ids.begin(), ids.end(), *added, static_cast<int32_t>(language));
}

}  // namespace mulciber
