// One request to a server by libcurl, with the response in a file or a text.
#pragma once

#ifdef MULCIBER_DOWNLOADS

#include <curl/curl.h>

#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <string_view>

#include "apps/pull/part_file.h"

namespace mulciber::apps {

/// The remedy for a transfer that stopped.
inline constexpr const char* kAgain = "start again: what was fetched is kept";

/// Headers of the last response of a transfer.
struct Response {
  long status = 0;
  std::string etag, last_modified, linked_etag, text;
  std::optional<std::uint64_t> range_begin, total;

  /// The validator that If-Range compares: a strong ETag, or a date.
  std::string validator() const {
    return !etag.empty() && !etag.starts_with("W/") ? etag : last_modified;
  }
};

class Transfer {
 public:
  /// token: an account's, or empty.
  Transfer(const std::string& url, const std::string& token);
  ~Transfer();
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  /// Continues a file at its end. Both arguments must outlive the transfer.
  void into(PartFile& file, const DownloadRequest& request);
  /// Throws ModelError for a response that does not fit the request.
  CURLcode run();
  const Response& response() const { return response_; }
  std::string problem(CURLcode code) const;
  /// Accepts a response without bytes as well.
  void finish();

 private:
  template <typename T>
  void set(CURLoption option, T value) {
    curl_easy_setopt(curl_, option, value);
  }

  void begin();
  void header(std::string_view line);
  void content_range(const std::string& value);
  void bytes(const char* data, std::size_t count);
  template <typename Action>
  std::size_t guarded(std::size_t count, Action&& action);
  static std::size_t on_header(char* data, std::size_t size, std::size_t count, void* self);
  static std::size_t on_bytes(char* data, std::size_t size, std::size_t count, void* self);
  static int on_progress(void* self, curl_off_t, curl_off_t, curl_off_t, curl_off_t);

  std::string url_;
  CURL* curl_ = nullptr;
  curl_slist* headers_ = nullptr;
  char problem_[CURL_ERROR_SIZE] = "";
  Response response_;
  PartFile* file_ = nullptr;
  const DownloadRequest* request_ = nullptr;
  bool begun_ = false;
  std::exception_ptr failure_;
};

}  // namespace mulciber::apps

#endif
