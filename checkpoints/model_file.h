// One file of a model: mapped from a path, lent by the host in memory, or behind a function of the
// host's.
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

/// A file's bytes, of which each has an address, whether or not it can be read there.
class FileBytes {
 public:
  virtual ~FileBytes() = default;
  std::span<const std::byte> all() const { return all_; }
  /// The first `count` can be read where they lie, from now on.
  virtual void fetch_first(std::uint64_t count);
  /// A part of all(), to be read where the result says: in place, or in `scratch`. Throws
  /// ModelError where the host's function gives less.
  virtual std::span<const std::byte> read(std::span<const std::byte> part,
                                          std::vector<std::byte>& scratch) const;
  /// Nobody reads this part of all() soon.
  virtual void release(std::span<const std::byte> part) const;
  /// Whether all of it can be read where it lies.
  virtual bool in_memory() const { return true; }

 protected:
  std::span<const std::byte> all_;
};

/// Copies share the bytes, which stay where they are.
class ModelFile {
 public:
  /// Maps it. Throws as MappedFile.
  ModelFile(const std::filesystem::path& path);
  /// Throws ModelError where there is no address space for a file of that size.
  ModelFile(const std::filesystem::path& path, const LentFile& file);

  const std::filesystem::path& path() const { return path_; }
  std::uint64_t size() const { return bytes_->all().size(); }
  const std::shared_ptr<FileBytes>& bytes() const { return bytes_; }
  /// All of it, in place or in `scratch`. Throws ModelError where more than `most` bytes would have
  /// to be read from the host's function, before that.
  std::string_view whole(std::vector<std::byte>& scratch, std::uint64_t most) const;

 private:
  std::filesystem::path path_;
  std::shared_ptr<FileBytes> bytes_;
};

}  // namespace mulciber
