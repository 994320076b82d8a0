// Reads the text of a notation character by character.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "text/grammar/rules.h"

namespace mulciber {

struct Repetition {
  uint32_t least, most;
};

class CharacterReader {
 public:
  /// Throws ModelError for a text that is too long or not UTF-8.
  CharacterReader(const std::string& notation, std::string_view text);

  bool done() const { return at_ >= text_.size(); }
  /// The next character; next() also moves past it. Both throw ModelError at the end.
  uint32_t peek() const;
  uint32_t next();
  bool follows(std::string_view bytes) const { return text_.substr(at_).starts_with(bytes); }
  bool take(std::string_view bytes);
  /// A character given by this many hexadecimal digits. Throws ModelError.
  uint32_t hex(int digits);
  /// Reads *, +, ?, {m}, {m,} or {m,n}. braces: every brace must begin one of these; otherwise a
  /// brace that does not is left unread.
  std::optional<Repetition> repetition(bool braces);

  /// Throws ModelError with line and column.
  [[noreturn]] void fail(const std::string& problem, const std::string& remedy = {}) const;

  /// Counts nested parentheses. Throws ModelError beyond kMostGrammarNesting.
  class Nested {
   public:
    explicit Nested(CharacterReader& reader);
    ~Nested() { --reader_.depth_; }
    Nested(const Nested&) = delete;
    Nested& operator=(const Nested&) = delete;

   private:
    CharacterReader& reader_;
  };

 private:
  std::optional<uint32_t> count();

  std::string notation_;
  std::string_view text_;
  size_t at_ = 0;
  size_t depth_ = 0;
};

}  // namespace mulciber
