// Shader modules packed into the program: one zstd stream (RFC 8878) over the words of all of them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace mulciber {

/// Unpacks on construction, and owns the words.
class ModuleArchive {
 public:
  /// word_counts: of each module, in the order of the stream. Throws KernelError when the stream is
  /// not theirs.
  ModuleArchive(std::span<const uint32_t> word_counts, std::span<const unsigned char> stream);

  /// The words of a module, for as long as the archive lives.
  std::span<const uint32_t> operator[](size_t module) const { return modules_[module]; }

 private:
  std::vector<uint32_t> words_;
  std::vector<std::span<const uint32_t>> modules_;
};

}  // namespace mulciber
