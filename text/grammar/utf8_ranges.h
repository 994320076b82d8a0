// Converts sets of characters to sequences of byte ranges.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "text/grammar/rules.h"

namespace mulciber {

struct ByteRange {
  uint8_t first, last;
};
/// One byte of each range, in order.
using Utf8Range = std::vector<ByteRange>;

/// The UTF-8 encodings of a set's characters, in the order of their codes.
std::vector<Utf8Range> utf8_ranges(const CodeSet& set);

/// UTF-8 of a character; of U+FFFD for an invalid code.
std::string utf8(uint32_t code);

}  // namespace mulciber
