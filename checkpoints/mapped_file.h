// A file mapped into memory.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>

namespace mulciber {

/// A read-only mapping of a whole regular file, released on destruction. The bytes keep their
/// address when the object is moved. The class cannot guard against another process that shortens
/// the file while it is mapped.
class MappedFile {
 public:
  /// Maps `path`. An empty file gives an empty span.
  /// Throws ModelError when the path is missing, unreadable, or not a regular file.
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

/// Calls `watcher` with the path of every file that is mapped from now on; an empty function ends
/// this. For tests that count how often files are opened. Must not be called while another thread
/// maps a file.
void watch_mapped_files(std::function<void(const std::filesystem::path&)> watcher);

/// Releases the memory of `bytes`, a part of a mapping; a later read loads them from the file
/// again.
void release_pages(std::span<const std::byte> bytes);

}  // namespace mulciber
