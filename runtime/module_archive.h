// Shader modules packed into the executable: one zstd stream (RFC 8878) of the words of all
// modules.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace mulciber {

/// Unpacks the stream on construction and owns the words.
class ModuleArchive {
 public:
  /// word_counts: the number of words of each module, in the order of the stream. Throws
  /// KernelError when the stream does not match.
  ModuleArchive(std::span<const uint32_t> word_counts, std::span<const unsigned char> stream);

  /// The words of a module, for as long as the archive lives.
  std::span<const uint32_t> operator[](size_t module) const { return modules_[module]; }

 private:
  std::vector<uint32_t> words_;
  std::vector<std::span<const uint32_t>> modules_;
};

}  // namespace mulciber
