#include "runtime/module_archive.h"

#include <numeric>

#include <zstd.h>

#include "mulciber/error.h"

namespace mulciber {

ModuleArchive::ModuleArchive(std::span<const uint32_t> word_counts,
                             std::span<const unsigned char> stream)
    : words_(std::accumulate(word_counts.begin(), word_counts.end(), size_t{0})) {
  const size_t bytes = words_.size() * sizeof(uint32_t);
  if (ZSTD_decompress(words_.data(), bytes, stream.data(), stream.size()) != bytes)
    throw KernelError("shader modules", "the program's own copy of them is damaged",
                      "install it again");
  std::span<const uint32_t> rest = words_;
  for (const uint32_t count : word_counts) {
    modules_.push_back(rest.first(count));
    rest = rest.subspan(count);
  }
}

}  // namespace mulciber
