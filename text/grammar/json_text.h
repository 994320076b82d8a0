// Grammar parts for the values of JSON.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "text/grammar/rules.h"

namespace mulciber {

/// Bounds of a number, as whole numbers.
struct NumberBounds {
  std::optional<int64_t> least, most;
  bool above_least = false, below_most = false;  // the bounds are excluded
  uint64_t divisor = 1;                          // whole numbers: all are multiples of it
  /// Above 0: numbers have at most this many digits after the point, and are multiples of divisor /
  /// 10^decimals, which divides 1.
  uint32_t decimals = 0;
};

/// Most digits of a number before and after its point: a model must not write digits forever.
constexpr int kMostDigits = 16;

/// The number of digits still to write, and the earlier digits' value modulo the divisor, with
/// zeros for the missing digits.
struct DigitsLeft {
  uint32_t count = 0;
  uint64_t divisor = 1, remainder = 0;
  auto operator<=>(const DigitsLeft&) const = default;
  /// The state after one more digit.
  DigitsLeft behind(uint32_t digit) const;
  /// Whether the missing digits can make a multiple of the divisor.
  bool can_end() const;
};
/// The number of different DigitsLeft for multiples of a divisor, on which the size of their
/// grammar depends.
uint64_t remainders_of(uint64_t divisor);

/// The parts of JSON that all schemas share, each made at first use.
class JsonText {
 public:
  explicit JsonText(Rules& rules) : rules_(rules) {}

  /// Space between brackets and their content: nothing, a blank, or a line end with some blanks.
  /// Unbounded space would let a model write blanks forever.
  Part gap();
  Part colon();  // followed by a blank or not
  Part comma() { return rules_.sequence({rules_.text(","), gap()}); }
  /// A character of a string, in any spelling.
  Part character();
  Part string(uint32_t least, uint32_t most);
  /// A string of `least` to `most` characters that a pattern matches; searches: anywhere in it.
  Part pattern(std::string_view pattern, bool searches, uint32_t least = 0,
               uint32_t most = kUnbounded);
  Part integer(const NumberBounds& bounds);
  Part number(const NumberBounds& bounds);
  Part boolean();
  /// Any value, object or array.
  Part value();
  Part object();
  Part array();
  /// `members` between two brackets, such as "{" and "}".
  Part braces(char open, Part members, char close);
  Part member(Part key, Part value) { return rules_.sequence({key, colon(), value}); }

 private:
  Part digits(uint32_t least, uint32_t most);
  /// Whole numbers in [least, most], without a sign.
  Part whole(uint64_t least, uint64_t most, uint64_t divisor = 1);
  Part of_length(std::string_view least, std::string_view most, const DigitsLeft& left);
  /// The digits still to write; the next one is in [first, last].
  Part multiples(const DigitsLeft& left, char first, char last);
  Part any_multiple(const DigitsLeft& left);
  /// A point and the digits after it; positive_fraction() excludes zero.
  Part fraction(const NumberBounds& of);
  Part positive_fraction(const NumberBounds& of);
  /// Numbers without a sign. of: gives the divisor.
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
