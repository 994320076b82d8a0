// The words of a passage, and which tokens of it are whose.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "text/tokenizer.h"

namespace mulciber {

struct PassageWords {
  struct Word {
    size_t begin, end;  // bytes of the passage, without blanks around it
  };
  std::vector<Word> words;
  std::vector<uint32_t> ids;    // tokens of the passage
  std::vector<size_t> word_of;  // of each token
};

/// Words end at blanks, and where that gives the same tokens as the whole passage has, marks of
/// punctuation are words too. Each word is tokenized with the blanks before it.
PassageWords passage_words(const Tokenizer& tokenizer, const std::string& passage);

}  // namespace mulciber
