// A partly downloaded file, with its source.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "apps/pull/download.h"

namespace mulciber::apps {

/// target.part, with the URL and the validator of its contents in target.part.from beside it.
/// Locked against other processes. Throws ModelError where it cannot be written.
class PartFile {
 public:
  explicit PartFile(const DownloadRequest& request);
  ~PartFile();
  PartFile(const PartFile&) = delete;
  PartFile& operator=(const PartFile&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::uint64_t size() const { return size_; }
  const std::string& validator() const { return validator_; }

  void truncate();
  /// Empties the file, for one that the server identifies by this validator.
  void begin(const std::string& validator);
  void append(const char* bytes, std::size_t count);
  /// Writes the file to the disk, then renames it.
  void move_to(const std::filesystem::path& target);
  void discard();

 private:
  [[noreturn]] void fail() const;

  std::filesystem::path path_, note_;
  std::string url_, validator_;
  int file_ = -1;
  std::uint64_t size_ = 0;
};

}  // namespace mulciber::apps
