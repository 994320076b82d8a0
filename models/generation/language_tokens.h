// Language tokens, which tell a multilingual translation model the source or target language.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "text/tokenizer.h"

namespace mulciber {

struct LanguageToken {
  uint32_t id = 0;
  /// Whether the token stands before the source text (Johnson et al. 2017, arXiv:1611.04558)
  /// instead of being forced as the first output token (Fan et al. 2020, arXiv:2010.11125).
  bool before_source = false;
};

/// The token of a language by its code: the code itself ("deu_Latn" of NLLB), "__de__" (M2M-100) or
/// ">>deu<<" (Marian). Throws ModelError naming languages that the vocabulary has.
LanguageToken language_token(const Tokenizer& tokenizer, const std::string& language);

/// The codes of languages that the vocabulary has tokens for, at most `most` of them.
std::vector<std::string> known_languages(const Tokenizer& tokenizer, size_t most);

/// Replaces the language token that the tokenizer has added to `ids` by another one. Throws
/// ModelError where the tokenizer adds no language token.
void replace_language(const Tokenizer& tokenizer, std::vector<int32_t>& ids, uint32_t language);

}  // namespace mulciber
