// Pre-tokenizers of GGUF files with byte-pair encoding: the file gives a name, the rules are here.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizers/regex.h"

namespace mulciber {

/// What the names stand for. Expressions are applied one after the other, each to the words that
/// the one before it left; what no expression matches is a word of its own.
struct GgufPreTokenizer {
  std::vector<std::string_view> names;
  std::vector<std::string> expressions;
  bool whole_words = false;       // a word that is a piece is taken without merging
  bool add_bos = false;           // where the file does not say
  bool add_separator = false;     // where the file does not say
  bool joins_punctuation = true;  // decoding takes away the space before it
  bool raw = false;  // pieces are text with U+2581 for spaces, not GPT-2's alphabet for bytes
  bool whole_line_breaks = false;  // a word of line breaks alone is taken without merging
};

/// All that are known. Names and rules are those of llama.cpp; expressions are those of the
/// tokenizer.json that a name was made for, where llama.cpp quotes one that it cannot run.
const std::vector<GgufPreTokenizer>& gguf_pre_tokenizers();

/// The one with this name in tokenizer.ggml.pre; null where none has it.
const GgufPreTokenizer* find_gguf_pre_tokenizer(std::string_view name);

/// Cuts valid UTF-8 into words.
class WordCutter {
 public:
  /// where: the file, for errors.
  WordCutter(const GgufPreTokenizer& rules, const std::string& where);
  /// Views into `text`, in order and without gaps. Throws ModelError when an expression needs too
  /// many steps on this text.
  std::vector<std::string_view> cut(std::string_view text) const;

 private:
  std::vector<Regex> expressions_;
};

}  // namespace mulciber
