#include "apps/pull/transfer.h"

#ifdef MULCIBER_DOWNLOADS

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>

#include "apps/cli/command.h"
#include "checkpoints/json.h"
#include "mulciber/error.h"

namespace mulciber::apps {

Transfer::Transfer(const std::string& url, const std::string& token) : url_(url) {
  static const CURLcode started = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (started != CURLE_OK || !(curl_ = curl_easy_init()))
    throw ModelError(url, "libcurl does not start", {});
  const bool secure = url.starts_with("https://");
  set(CURLOPT_URL, url.c_str());
  set(CURLOPT_USERAGENT, "mulciber");
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_FOLLOWLOCATION, 1L);
  set(CURLOPT_MAXREDIRS, 10L);
  // Only the web's protocols are allowed, and no redirect from https to http.
#if LIBCURL_VERSION_NUM >= 0x075500
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_REDIR_PROTOCOLS_STR, secure ? "https" : "http,https");
#else
  set(CURLOPT_PROTOCOLS, static_cast<long>(CURLPROTO_HTTP | CURLPROTO_HTTPS));
  set(CURLOPT_REDIR_PROTOCOLS,
      static_cast<long>(secure ? CURLPROTO_HTTPS : CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
  set(CURLOPT_CONNECTTIMEOUT, 30L);
  set(CURLOPT_LOW_SPEED_LIMIT, 1L);
  set(CURLOPT_LOW_SPEED_TIME, 60L);
  set(CURLOPT_ERRORBUFFER, problem_);
  set(CURLOPT_HEADERFUNCTION, on_header);
  set(CURLOPT_HEADERDATA, static_cast<void*>(this));
  set(CURLOPT_WRITEFUNCTION, on_bytes);
  set(CURLOPT_WRITEDATA, static_cast<void*>(this));
  set(CURLOPT_NOPROGRESS, 0L);
  set(CURLOPT_XFERINFOFUNCTION, on_progress);
  set(CURLOPT_XFERINFODATA, static_cast<void*>(this));
  if (!token.empty()) {  // libcurl sends it to no other host
    set(CURLOPT_HTTPAUTH, static_cast<long>(CURLAUTH_BEARER));
    set(CURLOPT_XOAUTH2_BEARER, token.c_str());
  }
}

Transfer::~Transfer() {
  curl_slist_free_all(headers_);
  curl_easy_cleanup(curl_);
}

void Transfer::into(PartFile& file, const DownloadRequest& request) {
  file_ = &file;
  request_ = &request;
  if (file.size() == 0) return;
  // CURLOPT_RESUME_FROM would make an error of a server that sends the whole file.
  set(CURLOPT_RANGE, (std::to_string(file.size()) + "-").c_str());
  headers_ = curl_slist_append(headers_, ("If-Range: " + file.validator()).c_str());
  set(CURLOPT_HTTPHEADER, headers_);
}

CURLcode Transfer::run() {
  const CURLcode code = curl_easy_perform(curl_);
  if (failure_) std::rethrow_exception(failure_);
  return code;
}

std::string Transfer::problem(CURLcode code) const {
  return printable(problem_[0] ? problem_ : curl_easy_strerror(code));
}

void Transfer::finish() {
  if (file_ && response_.status == 200 && !begun_) begin();
}

void Transfer::begin() {
  begun_ = true;
  if (response_.status == 206 && response_.range_begin == file_->size()) return;
  if (response_.status == 206)
    throw ModelError(url_, "the server sent another part of the file than was asked for", kAgain);
  file_->begin(response_.validator());
}

void Transfer::header(std::string_view line) {
  while (!line.empty() && (line.back() == '\r' || line.back() == '\n')) line.remove_suffix(1);
  if (line.starts_with("HTTP/")) {  // each response of a redirect has one
    const std::string linked = response_.linked_etag;
    response_ = {};
    response_.linked_etag = linked;  // the hub sends it before it redirects
    const std::size_t blank = line.find(' ');
    if (blank != line.npos)
      response_.status = std::strtol(std::string(line.substr(blank + 1, 3)).c_str(), nullptr, 10);
    return;
  }
  const std::size_t colon = line.find(':');
  if (colon == line.npos) return;
  std::string name(line.substr(0, colon)), value(line.substr(colon + 1));
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  value.erase(0, value.find_first_not_of(" \t"));
  if (name == "etag")
    response_.etag = value;
  else if (name == "last-modified")
    response_.last_modified = value;
  else if (name == "x-linked-etag")
    response_.linked_etag = value;
  else if (name == "content-length" && response_.status == 200)
    response_.total = std::strtoull(value.c_str(), nullptr, 10);
  else if (name == "content-range")
    content_range(value);
}

/// Parses "bytes 5-9/10", or "bytes */10" where no range fits.
void Transfer::content_range(const std::string& value) {
  unsigned long long begin = 0, end = 0, total = 0;
  if (std::sscanf(value.c_str(), "bytes %llu-%llu/%llu", &begin, &end, &total) == 3)
    response_.range_begin = begin, response_.total = total;
  else if (std::sscanf(value.c_str(), "bytes */%llu", &total) == 1)
    response_.total = total;
}

void Transfer::bytes(const char* data, std::size_t count) {
  const bool wanted = response_.status == 200 || response_.status == 206;
  if (!file_ || !wanted) {
    constexpr std::size_t kMost = std::size_t{16} << 20;
    if (response_.text.size() + count > kMost)
      throw ModelError(url_, "the server sent more than 16 MiB where a short text was due", {});
    response_.text.append(data, count);
    return;
  }
  if (!begun_) begin();
  const std::uint64_t expected =
      request_->bytes > 0 ? request_->bytes : response_.total.value_or(UINT64_MAX);
  if (file_->size() + count > expected)
    throw ModelError(
        url_, fmt::format("the server sent more than the {} bytes that were expected", expected),
        "is this the right file?");
  file_->append(data, count);
}

// libcurl is C: an exception waits until it has returned.
template <typename Action>
std::size_t Transfer::guarded(std::size_t count, Action&& action) {
  try {
    action();
    return count;
  } catch (...) {
    failure_ = std::current_exception();
    return count == 0 ? 1 : 0;
  }
}

std::size_t Transfer::on_header(char* data, std::size_t size, std::size_t count, void* self) {
  return static_cast<Transfer*>(self)->guarded(size * count, [&] {
    static_cast<Transfer*>(self)->header({data, size * count});
  });
}

std::size_t Transfer::on_bytes(char* data, std::size_t size, std::size_t count, void* self) {
  return static_cast<Transfer*>(self)->guarded(
      size * count, [&] { static_cast<Transfer*>(self)->bytes(data, size * count); });
}

int Transfer::on_progress(void* self, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  auto& transfer = *static_cast<Transfer*>(self);
  if (transfer.file_ && transfer.request_->progress)
    transfer.request_->progress(transfer.file_->size(), transfer.request_->bytes > 0
                                                            ? transfer.request_->bytes
                                                            : transfer.response_.total.value_or(0));
  return interrupted() ? 1 : 0;
}

}  // namespace mulciber::apps

#endif
