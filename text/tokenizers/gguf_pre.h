// Pre-tokenizers of GGUF files with byte-pair encoding: the file gives a name, this table its
// rules.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizers/regex.h"

namespace mulciber {

/// The rules of some names. Expressions are applied one after the other, each to the words that the
/// previous one left; text that no expression matches becomes a word.
struct GgufPreTokenizer {
  std::vector<std::string_view> names;
  std::vector<std::string> expressions;
  bool whole_words = false;        // a word that is a piece is not merged
  bool add_bos = false;            // where the file does not say
  bool add_separator = false;      // where the file does not say
  bool joins_punctuation = true;   // decoding removes the space before it
  bool raw = false;                // pieces use U+2581 for spaces, not GPT-2's byte alphabet
  bool whole_line_breaks = false;  // a word of line breaks alone is not merged
};

/// All known pre-tokenizers. Names and rules are llama.cpp's; where llama.cpp quotes an expression
/// that it cannot run, the expression is that of the original tokenizer.json.
const std::vector<GgufPreTokenizer>& gguf_pre_tokenizers();

/// The pre-tokenizer that has this name in tokenizer.ggml.pre; null where none has it.
const GgufPreTokenizer* find_gguf_pre_tokenizer(std::string_view name);

/// Splits valid UTF-8 into words.
class WordCutter {
 public:
  /// where: the file, for errors.
  WordCutter(const GgufPreTokenizer& rules, const std::string& where);
  /// The words as views into `text`, in order and without gaps. Throws ModelError when an
  /// expression needs too many steps on this text.
  std::vector<std::string_view> cut(std::string_view text) const;

 private:
  std::vector<Regex> expressions_;
};

}  // namespace mulciber
