#include "ops/control.h"

#include <limits>

#include <fmt/format.h>

#include "mulciber/error.h"

namespace mulciber {

uint32_t ControlLayout::take(uint32_t alignment, uint64_t words) {
  const uint64_t begin = (uint64_t{words_} + alignment - 1) / alignment * alignment;
  if (begin + words > std::numeric_limits<uint32_t>::max() / sizeof(uint32_t)) {
    throw ShapeError("control", fmt::format("{} words more pass 4 GiB", words),
                     "use a smaller batch or a shorter maximum length");
  }
  words_ = static_cast<uint32_t>(begin + words);
  return static_cast<uint32_t>(begin);
}

}  // namespace mulciber
