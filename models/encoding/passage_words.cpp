#include "models/encoding/passage_words.h"

namespace mulciber {
namespace {

bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/// Whether a character is ASCII punctuation; other characters belong to words.
bool is_mark(char c) {
  return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') ||
         (c >= '{' && c <= '~');
}

PassageWords cut(const Tokenizer& tokenizer, const std::string& passage, bool at_marks) {
  PassageWords result;
  size_t at = 0;
  while (at < passage.size()) {
    size_t begin = at;
    while (begin < passage.size() && is_blank(passage[begin])) ++begin;
    if (begin == passage.size()) break;
    size_t end = begin + 1;
    if (!at_marks || !is_mark(passage[begin]))
      while (end < passage.size() && !is_blank(passage[end]) &&
             !(at_marks && is_mark(passage[end])))
        ++end;
    const std::vector<int32_t> ids = tokenizer.encode(
        passage.substr(at, end - at), {.add_special = false, .parse_special = false});
    for (const int32_t id : ids) {
      result.ids.push_back(static_cast<uint32_t>(id));
      result.word_of.push_back(result.words.size());
    }
    result.words.push_back({begin, end});
    at = end;
  }
  return result;
}

}  // namespace

PassageWords passage_words(const Tokenizer& tokenizer, const std::string& passage) {
  size_t end = passage.size();  // trailing blanks belong to no word
  while (end > 0 && is_blank(passage[end - 1])) --end;
  const std::vector<int32_t> whole =
      tokenizer.encode(passage.substr(0, end), {.add_special = false, .parse_special = false});
  PassageWords fine = cut(tokenizer, passage, true);
  if (fine.ids == std::vector<uint32_t>(whole.begin(), whole.end())) return fine;
  return cut(tokenizer, passage, false);
}

}  // namespace mulciber
