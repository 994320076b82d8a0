// A file that is being fetched: what is there of it, and where that is from.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "apps/pull/download.h"

namespace mulciber::apps {

/// target.part, with the URL and the validator of what is in it beside it, in target.part.from.
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
  /// Empties it, for a file that the server knows by this validator.
  void begin(const std::string& validator);
  void append(const char* bytes, std::size_t count);
  /// Gives it its name once it is on the disk.
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
