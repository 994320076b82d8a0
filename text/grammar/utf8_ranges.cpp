#include "text/grammar/utf8_ranges.h"

#include <algorithm>

#include "text/tokenizers/text.h"

namespace mulciber {
namespace {

uint32_t last_of_length(size_t bytes) {
  constexpr uint32_t kLast[] = {0x7f, 0x7ff, 0xffff, 0x10ffff};
  return kLast[bytes - 1];
}

/// Adds a range whose characters have equal lengths, split until the values of each byte do not
/// depend on the bytes before it.
void add(std::vector<Utf8Range>& to, CodeRange range, size_t bytes) {
  for (size_t behind = 1; behind < bytes; ++behind) {
    const uint32_t mask = (uint32_t{1} << (6 * behind)) - 1;
    if ((range.first & ~mask) == (range.last & ~mask)) continue;
    if ((range.first & mask) != 0) {
      add(to, {range.first, range.first | mask}, bytes);
      add(to, {(range.first | mask) + 1, range.last}, bytes);
      return;
    }
    if ((range.last & mask) != mask) {
      add(to, {range.first, (range.last & ~mask) - 1}, bytes);
      add(to, {range.last & ~mask, range.last}, bytes);
      return;
    }
  }
  const std::string first = utf8(range.first), last = utf8(range.last);
  Utf8Range made;
  for (size_t i = 0; i < bytes; ++i)
    made.push_back({static_cast<uint8_t>(first[i]), static_cast<uint8_t>(last[i])});
  to.push_back(std::move(made));
}

}  // namespace

std::string utf8(uint32_t code) {
  std::string bytes;
  append_utf8(bytes, code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)
                         ? 0xfffd
                         : static_cast<int32_t>(code));
  return bytes;
}

std::vector<Utf8Range> utf8_ranges(const CodeSet& set) {
  std::vector<Utf8Range> made;
  for (CodeRange range : normalized(set)) {
    for (size_t bytes = 1; bytes <= 4 && range.first <= range.last; ++bytes) {
      if (range.first > last_of_length(bytes)) continue;
      const uint32_t last = std::min(range.last, last_of_length(bytes));
      add(made, {range.first, last}, bytes);
      range.first = last + 1;
    }
  }
  return made;
}

}  // namespace mulciber
