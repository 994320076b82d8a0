// Helpers that the fuzz targets share.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

#include "mulciber/error.h"

namespace mulciber::fuzz {

/// A file in memory that holds the given bytes, for the readers that map files.
class MemoryFile {
 public:
  MemoryFile(const std::uint8_t* bytes, std::size_t size)
      : file_(memfd_create("fuzz", MFD_CLOEXEC)) {
    if (file_ < 0 || write(file_, bytes, size) != static_cast<ssize_t>(size)) std::abort();
  }
  ~MemoryFile() { close(file_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  std::filesystem::path path() const { return "/proc/self/fd/" + std::to_string(file_); }

 private:
  int file_;
};

/// A bad file should end in a ModelError; any other exception ends the process, and is a finding.
template <typename Action>
bool accepts(Action&& action) {
  try {
    action();
    return true;
  } catch (const ModelError& error) {
    if (std::string_view(error.what()).empty()) std::abort();
    return false;
  }
}

inline std::string_view text(const std::uint8_t* bytes, std::size_t size) {
  return {reinterpret_cast<const char*>(bytes), size};
}

}  // namespace mulciber::fuzz
