// Files from servers: resumed where they stopped, checked, and in place only when they are whole.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

namespace mulciber::apps {

struct DownloadRequest {
  std::string url;
  std::filesystem::path target;
  std::uint64_t bytes = 0;  // expected; 0: what the server says
  std::string sha256;       // expected, in hexadecimal; empty: what the server says, if it does
  std::string token;  // of an account; sent to the first server alone, not where it redirects to
  std::function<void(std::uint64_t done, std::uint64_t total)> progress;  // total: 0 when unknown
};

struct DownloadResult {
  std::uint64_t bytes = 0;
  std::uint64_t resumed_at = 0;  // bytes that an earlier run had left
  std::string sha256;
  bool checked = false;    // there was a SHA-256 to compare with
  bool was_there = false;  // nothing was fetched
};

/// False where the program was built without libcurl or nettle; then the functions below throw
/// SettingError.
bool downloads_supported();

/// Fetches into target.part and renames it when it is whole and its SHA-256 fits; then it is on the
/// disk. A .part of an earlier run goes on where it ended, if the server says that the file is
/// still the same. Passing failures are tried again, with pauses, until five in a row brought
/// nothing. A file that is there already is checked, not fetched. Throws ModelError naming URL or
/// file: what the server answered, what does not fit, or that it was interrupted (the .part stays).
DownloadResult download(const DownloadRequest& request);

/// A short text, such as a list of files; at most 16 MiB. Throws as download().
std::string fetch_text(const std::string& url, const std::string& token);

/// In hexadecimal. Throws ModelError where the file cannot be read.
std::string sha256_of(const std::filesystem::path& file);

}  // namespace mulciber::apps
