// A file's bytes, mapped into memory rather than read.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>

namespace mulciber {

/// A read-only mapping of a whole regular file, released on destruction.
/// The bytes stay where they are when the object is moved. A file that another process shortens
/// while it is mapped is outside what this class can guard against.
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

/// Called with the path of every file that is mapped from now on; an empty function: no longer. For
/// tests of what is opened how often. Not while another thread maps a file.
void watch_mapped_files(std::function<void(const std::filesystem::path&)> watcher);

/// Lets go of the memory that holds `bytes`, a part of a mapping: whoever reads them again reads
/// the file again.
void release_pages(std::span<const std::byte> bytes);

}  // namespace mulciber
