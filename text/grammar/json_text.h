// How values of JSON are written.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "text/grammar/rules.h"

namespace mulciber {

/// Bounds of a number. Values are whole numbers.
struct NumberBounds {
  std::optional<int64_t> least, most;
  bool above_least = false, below_most = false;  // the bounds themselves are left out
  uint64_t divisor = 1;                          // of whole numbers: all are multiples of it
  /// Above 0: numbers have at most so many digits behind the point, and are multiples of
  /// divisor / 10^decimals, which goes into 1.
  uint32_t decimals = 0;
};

/// Digits that a number has before its point, and behind it, at most: a model may not write digits
/// for ever.
constexpr int kMostDigits = 16;

/// Digits that a number has left to be written, and what of those before them counts: their
/// remainder by the divisor, times ten for each digit left.
struct DigitsLeft {
  uint32_t count = 0;
  uint64_t divisor = 1, remainder = 0;
  auto operator<=>(const DigitsLeft&) const = default;
  /// Behind another digit.
  DigitsLeft behind(uint32_t digit) const;
  /// Whether some digits make a multiple of the divisor.
  bool can_end() const;
};
/// The number of different DigitsLeft that multiples of a divisor meet: what a grammar of them
/// takes.
uint64_t remainders_of(uint64_t divisor);

/// The parts of JSON that all schemas share, each made when it is first asked for.
class JsonText {
 public:
  explicit JsonText(Rules& rules) : rules_(rules) {}

  /// Between brackets and what they hold: nothing, a blank, or a line's end with some blanks. More
  /// would let a model write blanks for ever.
  Part gap();
  Part colon();  // with a blank behind it, or none
  Part comma() { return rules_.sequence({rules_.text(","), gap()}); }
  /// A character of a string, however it may be spelled.
  Part character();
  Part string(uint32_t least, uint32_t most);
  /// A string that a pattern matches, of so many characters; searches: somewhere.
  Part pattern(std::string_view pattern, bool searches, uint32_t least = 0,
               uint32_t most = kUnbounded);
  Part integer(const NumberBounds& bounds);
  Part number(const NumberBounds& bounds);
  Part boolean();
  /// Any value, object or array.
  Part value();
  Part object();
  Part array();
  /// "{", what stands between, "}"; members: none, or at least one.
  Part braces(char open, Part members, char close);
  Part member(Part key, Part value) { return rules_.sequence({key, colon(), value}); }

 private:
  Part digits(uint32_t least, uint32_t most);
  /// Whole numbers without a sign, [least, most].
  Part whole(uint64_t least, uint64_t most, uint64_t divisor = 1);
  Part of_length(std::string_view least, std::string_view most, const DigitsLeft& left);
  /// The digits that are left, the next of which is one of [first, last].
  Part multiples(const DigitsLeft& left, char first, char last);
  Part any_multiple(const DigitsLeft& left);
  /// A point and the digits behind it, or those that are above 0.
  Part fraction(const NumberBounds& of);
  Part positive_fraction(const NumberBounds& of);
  /// Numbers without a sign. of: what they are multiples of.
  Part magnitude(uint64_t least, bool above, uint64_t most, bool below, bool whole_only,
                 const NumberBounds& of);
  Part bounded(const NumberBounds& bounds, bool whole_only);
  Part made(std::optional<Part>& part, const char* name, Part (JsonText::*make)());
  Part make_gap();
  Part make_character();
  Part make_value();

  Rules& rules_;
  std::optional<Part> gap_, character_, value_;
  std::map<DigitsLeft, Part> multiples_;
};

}  // namespace mulciber
