#include "models/generation/context_shift.h"

namespace mulciber {

size_t left_out_tokens(size_t count, uint32_t keep, uint32_t context) {
  if (count < context) return 0;
  const size_t half = (context - keep) / 2;
  return (count - context) / half * half + half;
}

std::vector<uint32_t> shifted(std::span<const uint32_t> ids, uint32_t keep, uint32_t context) {
  const size_t gone = left_out_tokens(ids.size(), keep, context);
  if (gone == 0) return {ids.begin(), ids.end()};
  std::vector<uint32_t> stay(ids.begin(), ids.begin() + keep);
  stay.insert(stay.end(), ids.begin() + static_cast<std::ptrdiff_t>(keep + gone), ids.end());
  return stay;
}

}  // namespace mulciber
