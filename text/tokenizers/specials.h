// Finds special tokens that a text spells out.
#pragma once

#include <string>
#include <string_view>

#include "mulciber/error.h"
#include "text/tokenizers/trie.h"

namespace mulciber {

/// Walks through `text`: calls on_text(part) for the text between special tokens and
/// on_special(value) for each special token, the longest where several begin at one position.
/// specials may be null: the text is one part. Empty parts are skipped.
template <typename OnText, typename OnSpecial>
void split_at_specials(std::string_view text, const PieceTrie* specials, OnText&& on_text,
                       OnSpecial&& on_special) {
  std::size_t begin = 0, at = 0;
  while (specials != nullptr && at < text.size()) {
    const PieceTrie::Match match = specials->longest_prefix(text.substr(at));
    if (match.length == 0) {
      ++at;
      continue;
    }
    if (at > begin) on_text(text.substr(begin, at - begin));
    on_special(match.value);
    begin = at += match.length;
  }
  if (begin < text.size()) on_text(text.substr(begin));
}

inline ModelError unknown_token_id(std::int64_t id, std::int64_t vocab_size) {
  return {"token id " + std::to_string(id),
          "is outside the vocabulary of " + std::to_string(vocab_size),
          "check that model and tokenizer belong together"};
}

}  // namespace mulciber
