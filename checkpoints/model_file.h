// One file of a model: mapped from a path, lent by the application in memory, or read by an
// application's function.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "mulciber/open_model.h"

namespace mulciber {

/// The bytes of a file. Each has an address, whether or not it can be read there.
class FileBytes {
 public:
  virtual ~FileBytes() = default;
  std::span<const std::byte> all() const { return all_; }
  /// Makes the first `count` bytes readable in place from now on.
  virtual void fetch_first(std::uint64_t count);
  /// Reads a part of all(); returns where its bytes are: in place or in `scratch`. Throws
  /// ModelError where the application's function gives fewer bytes.
  virtual std::span<const std::byte> read(std::span<const std::byte> part,
                                          std::vector<std::byte>& scratch) const;
  /// Tells that this part of all() will not be read soon.
  virtual void release(std::span<const std::byte> part) const;
  /// Whether all bytes can be read in place.
  virtual bool in_memory() const { return true; }

 protected:
  std::span<const std::byte> all_;
};

/// Copies share the bytes, whose addresses stay.
class ModelFile {
 public:
  /// Maps the file. Throws as MappedFile does.
  ModelFile(const std::filesystem::path& path);
  /// Opens a lent file. Throws ModelError where there is no address space for its size.
  ModelFile(const std::filesystem::path& path, const LentFile& file);

  const std::filesystem::path& path() const { return path_; }
  std::uint64_t size() const { return bytes_->all().size(); }
  const std::shared_ptr<FileBytes>& bytes() const { return bytes_; }
  /// The whole file, in place or in `scratch`. Throws ModelError, before it reads, where more than
  /// `most` bytes would have to be read by the application's function.
  std::string_view whole(std::vector<std::byte>& scratch, std::uint64_t most) const;

 private:
  std::filesystem::path path_;
  std::shared_ptr<FileBytes> bytes_;
};

}  // namespace mulciber
