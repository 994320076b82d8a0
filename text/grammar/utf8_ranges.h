// Sets of characters as sequences of ranges of bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "text/grammar/rules.h"

namespace mulciber {

struct ByteRange {
  uint8_t first, last;
};
/// A byte of each range, one after the other.
using Utf8Range = std::vector<ByteRange>;

/// What the UTF-8 of the characters of a set is made of, in the order of their codes.
std::vector<Utf8Range> utf8_ranges(const CodeSet& set);

/// A character's; U+FFFD's where there is none.
std::string utf8(uint32_t code);

}  // namespace mulciber
