#include "text/grammar/reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "text/tokenizers/text.h"

namespace mulciber {

CharacterReader::CharacterReader(const std::string& notation, std::string_view text)
    : notation_(notation), text_(text) {
  if (text.size() > kMostGrammarBytes)
    refuse_grammar(notation,
                   fmt::format("has {} bytes, at most {} are read", text.size(), kMostGrammarBytes),
                   "make it smaller");
  if (!is_valid_utf8(text)) refuse_grammar(notation, "is not UTF-8", "save it as UTF-8");
}

uint32_t CharacterReader::peek() const {
  if (done()) fail("ends too early");
  return static_cast<uint32_t>(first_code_point(text_.substr(at_)).value);
}

uint32_t CharacterReader::next() {
  if (done()) fail("ends too early");
  const CodePoint here = first_code_point(text_.substr(at_));
  at_ += here.length;
  return static_cast<uint32_t>(here.value);
}

bool CharacterReader::take(std::string_view bytes) {
  if (!follows(bytes)) return false;
  at_ += bytes.size();
  return true;
}

uint32_t CharacterReader::hex(int digits) {
  uint32_t value = 0;
  for (int i = 0; i < digits; ++i) {
    const uint32_t c = next();
    const uint32_t digit = c >= '0' && c <= '9'   ? c - '0'
                           : c >= 'a' && c <= 'f' ? c - 'a' + 10
                           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                  : 16;
    if (digit == 16) fail(fmt::format("has an escape that needs {} hexadecimal digits", digits));
    if (value > 0x10ffff) break;
    value = value * 16 + digit;
  }
  if (value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff))
    fail("has an escape that is no character");
  return value;
}

std::optional<uint32_t> CharacterReader::count() {
  if (done() || peek() < '0' || peek() > '9') return std::nullopt;
  uint64_t value = 0;
  while (!done() && peek() >= '0' && peek() <= '9')
    value = std::min<uint64_t>(value * 10 + (next() - '0'), kUnbounded - 1);
  return static_cast<uint32_t>(value);
}

std::optional<Repetition> CharacterReader::repetition(bool braces) {
  if (take("*")) return Repetition{0, kUnbounded};
  if (take("+")) return Repetition{1, kUnbounded};
  if (take("?")) return Repetition{0, 1};
  const size_t begin = at_;
  if (!take("{")) return std::nullopt;
  const auto blanks = [&] {
    while (braces && (take(" ") || take("\t"))) continue;
  };
  blanks();
  const std::optional<uint32_t> least = count();
  blanks();
  std::optional<uint32_t> most = least;
  if (take(",")) {
    blanks();
    most = count();
    blanks();
    if (!most && least) most = kUnbounded;
  }
  if (!take("}") || !most || (!least && !braces)) {
    at_ = begin;
    if (braces) fail("has a { that is no {m}, {m,}, {,n} or {m,n}");
    return std::nullopt;
  }
  if (least.value_or(0) > *most) fail("repeats something at least more often than at most");
  return Repetition{least.value_or(0), *most};
}

void CharacterReader::fail(const std::string& problem, const std::string& remedy) const {
  const std::string_view before = text_.substr(0, at_);
  const auto lines = std::ranges::count(before, '\n');
  const size_t line = before.rfind('\n') + 1;
  refuse_grammar(fmt::format("{}, line {}, column {}", notation_, lines + 1,
                             count_code_points(before.substr(line)) + 1),
                 problem, remedy);
}

CharacterReader::Nested::Nested(CharacterReader& reader) : reader_(reader) {
  if (++reader_.depth_ <= kMostGrammarNesting) return;
  --reader_.depth_;
  reader_.fail(fmt::format("has more than {} parentheses in one another", kMostGrammarNesting));
}

}  // namespace mulciber
