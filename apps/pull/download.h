// Downloads files: resumes them where they stopped, checks them, and puts them in place only when
// they are whole.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

namespace mulciber::apps {

struct DownloadRequest {
  std::string url;
  std::filesystem::path target;
  std::uint64_t bytes = 0;  // expected; 0: the server's number counts
  std::string sha256;       // expected, in hexadecimal; empty: the server's counts, if it gives one
  /// An account's token; sent to the first server alone, not to one to which it redirects.
  std::string token;
  std::function<void(std::uint64_t done, std::uint64_t total)> progress;  // total: 0 when unknown
};

struct DownloadResult {
  std::uint64_t bytes = 0;
  std::uint64_t resumed_at = 0;  // bytes from an earlier run
  std::string sha256;
  bool checked = false;    // there was a SHA-256 to compare with
  bool was_there = false;  // nothing was fetched
};

/// False where the program was built without libcurl or nettle; then the functions below throw
/// SettingError.
bool downloads_supported();

/// Downloads to target.part, and renames it once it is whole, its SHA-256 fits and it is on the
/// disk. A .part of an earlier run is continued, if the server confirms that the file is the same.
/// Temporary failures are tried again, with pauses, until five in a row brought no bytes. An
/// existing file is checked, not fetched. Throws ModelError naming URL or file: with the server's
/// answer, with what does not fit, or because of an interrupt (the .part stays).
DownloadResult download(const DownloadRequest& request);

/// Downloads a short text, such as a list of files; at most 16 MiB. Throws as download().
std::string fetch_text(const std::string& url, const std::string& token);

/// The SHA-256 in hexadecimal. Throws ModelError where the file cannot be read.
std::string sha256_of(const std::filesystem::path& file);

}  // namespace mulciber::apps
