// The words of a passage and their tokens.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "text/tokenizer.h"

namespace mulciber {

struct PassageWords {
  struct Word {
    size_t begin, end;  // byte range in the passage, without blanks
  };
  std::vector<Word> words;
  std::vector<uint32_t> ids;    // tokens of the passage
  std::vector<size_t> word_of;  // word of each token
};

/// Splits a passage at blanks. Punctuation marks are words too if that gives the tokens of the
/// whole passage. Each word is tokenized with the blanks before it.
PassageWords passage_words(const Tokenizer& tokenizer, const std::string& passage);

}  // namespace mulciber
