#include "models/generation/prompt_lookup.h"

#include <algorithm>

namespace mulciber {

std::vector<uint32_t> prompt_lookup(std::span<const uint32_t> ids, uint32_t longest,
                                    uint32_t count) {
  std::vector<uint32_t> found;
  const size_t size = ids.size();
  for (size_t length = std::min<size_t>(longest, size > 0 ? size - 1 : 0);
       length >= std::min(longest, 2u) && length > 0; --length) {
    const auto latest = ids.last(length);
    for (size_t begin = size - length; begin-- > 0;) {
      if (!std::ranges::equal(ids.subspan(begin, length), latest)) continue;
      for (size_t i = 0; i < count; ++i) {
        const size_t at = begin + length + i;
        found.push_back(at < size ? ids[at] : found[at - size]);
      }
      return found;
    }
  }
  return found;
}

}  // namespace mulciber
