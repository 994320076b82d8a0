#include "apps/pull/download.h"

#include "apps/command.h"
#include "mulciber/error.h"

#ifndef MULCIBER_DOWNLOADS

namespace mulciber::apps {
namespace {
[[noreturn]] void refuse() {
  throw SettingError("pull",
                     "this mulciber was built without libcurl or nettle, and cannot download",
                     "install libcurl4-openssl-dev and nettle-dev and build again, or fetch the "
                     "file with another program");
}
}  // namespace

bool downloads_supported() { return false; }
DownloadResult download(const DownloadRequest&) { refuse(); }
std::string fetch_text(const std::string&, const std::string&) { refuse(); }
std::string sha256_of(const std::filesystem::path&) { refuse(); }

}  // namespace mulciber::apps

#else

#include <curl/curl.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstring>
#include <fstream>
#include <optional>
#include <thread>

#include "checkpoints/json.h"

namespace mulciber::apps {
namespace {

namespace fs = std::filesystem;

constexpr const char* kAgain = "start again: what was fetched is kept";

/// What the last response of a transfer said.
struct Response {
  long status = 0;
  std::string etag, last_modified, linked_etag, text;
  std::optional<std::uint64_t> range_begin, total;

  /// What If-Range compares: a strong ETag, or a date.
  std::string validator() const {
    return !etag.empty() && !etag.starts_with("W/") ? etag : last_modified;
  }
};

/// A file that is being fetched, with the URL and the validator of what is in it beside it.
class PartFile {
 public:
  PartFile(const DownloadRequest& request)
      : path_(request.target.string() + ".part"),
        note_(path_.string() + ".from"),
        url_(request.url) {
    file_ = open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (file_ < 0)
      throw ModelError(path_.string(), std::string("cannot be written: ") + std::strerror(errno),
                       "choose another folder with --output");
    if (flock(file_, LOCK_EX | LOCK_NB) != 0) {
      close(file_);
      throw ModelError(path_.string(), "is being fetched by another process", "wait for it");
    }
    std::ifstream in(note_);
    std::string url;
    if (std::getline(in, url) && url == url_) std::getline(in, validator_);
    // Without a validator nobody knows whether the rest belongs to this beginning.
    if (validator_.empty()) truncate();
    size_ = static_cast<std::uint64_t>(lseek(file_, 0, SEEK_END));
  }
  ~PartFile() { close(file_); }
  PartFile(const PartFile&) = delete;
  PartFile& operator=(const PartFile&) = delete;

  const fs::path& path() const { return path_; }
  std::uint64_t size() const { return size_; }
  const std::string& validator() const { return validator_; }

  void truncate() {
    if (ftruncate(file_, 0) != 0) fail();
    lseek(file_, 0, SEEK_SET);
    size_ = 0;
  }
  void begin(const std::string& validator) {
    truncate();
    validator_ = validator;
    std::ofstream(note_, std::ios::trunc) << url_ << '\n' << validator_ << '\n';
  }
  void append(const char* bytes, std::size_t count) {
    while (count > 0) {
      const ssize_t written = ::write(file_, bytes, count);
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) fail();
      bytes += written;
      count -= static_cast<std::size_t>(written);
      size_ += static_cast<std::uint64_t>(written);
    }
  }
  void move_to(const fs::path& target) {
    if (fsync(file_) != 0) fail();
    fs::rename(path_, target);
    discard();
  }
  void discard() {
    std::error_code ignored;
    fs::remove(path_, ignored);
    fs::remove(note_, ignored);
  }

 private:
  [[noreturn]] void fail() const {
    throw ModelError(path_.string(), std::string("cannot be written: ") + std::strerror(errno),
                     "is the disk full?");
  }

  fs::path path_, note_;
  std::string url_, validator_;
  int file_ = -1;
  std::uint64_t size_ = 0;
};

/// One transfer by libcurl, into a file or a text.
class Transfer {
 public:
  Transfer(const std::string& url, const std::string& token) : url_(url) {
    static const CURLcode started = curl_global_init(CURL_GLOBAL_DEFAULT);
    if (started != CURLE_OK || !(curl_ = curl_easy_init()))
      throw ModelError(url, "libcurl does not start", {});
    const bool secure = url.starts_with("https://");
    set(CURLOPT_URL, url.c_str());
    set(CURLOPT_USERAGENT, "mulciber");
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_FOLLOWLOCATION, 1L);
    set(CURLOPT_MAXREDIRS, 10L);
    // Nothing but the web, and no way back from a secured server to an open one.
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
    if (!token.empty()) {  // libcurl keeps it from other hosts
      set(CURLOPT_HTTPAUTH, static_cast<long>(CURLAUTH_BEARER));
      set(CURLOPT_XOAUTH2_BEARER, token.c_str());
    }
  }
  ~Transfer() {
    curl_slist_free_all(headers_);
    curl_easy_cleanup(curl_);
  }
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  void into(PartFile& file, const DownloadRequest& request) {
    file_ = &file;
    request_ = &request;
    if (file.size() == 0) return;
    // Not CURLOPT_RESUME_FROM, which makes an error of a server that sends the whole file.
    set(CURLOPT_RANGE, (std::to_string(file.size()) + "-").c_str());
    headers_ = curl_slist_append(headers_, ("If-Range: " + file.validator()).c_str());
    set(CURLOPT_HTTPHEADER, headers_);
  }

  CURLcode run() {
    const CURLcode code = curl_easy_perform(curl_);
    if (failure_) std::rethrow_exception(failure_);
    return code;
  }
  const Response& response() const { return response_; }
  std::string problem(CURLcode code) const {
    return printable(problem_[0] ? problem_ : curl_easy_strerror(code));
  }
  /// Makes sure that an answer without bytes is seen as well.
  void finish() {
    if (file_ && response_.status == 200 && !begun_) begin();
  }

 private:
  template <typename T>
  void set(CURLoption option, T value) {
    curl_easy_setopt(curl_, option, value);
  }

  void begin() {
    begun_ = true;
    if (response_.status == 206 && response_.range_begin == file_->size()) return;
    if (response_.status == 206)
      throw ModelError(url_, "the server sent another part of the file than was asked for", kAgain);
    file_->begin(response_.validator());
  }

  void header(std::string_view line) {
    while (!line.empty() && (line.back() == '\r' || line.back() == '\n')) line.remove_suffix(1);
    if (line.starts_with("HTTP/")) {  // of every response on the way
      const std::string linked = response_.linked_etag;
      response_ = {};
      response_.linked_etag = linked;  // the hub says it before it redirects
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

  /// "bytes 5-9/10", or "bytes */10" where nothing fits.
  void content_range(const std::string& value) {
    unsigned long long begin = 0, end = 0, total = 0;
    if (std::sscanf(value.c_str(), "bytes %llu-%llu/%llu", &begin, &end, &total) == 3)
      response_.range_begin = begin, response_.total = total;
    else if (std::sscanf(value.c_str(), "bytes */%llu", &total) == 1)
      response_.total = total;
  }

  void bytes(const char* data, std::size_t count) {
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

  // libcurl is C: what is thrown waits until it has returned.
  template <typename Action>
  std::size_t guarded(std::size_t count, Action&& action) {
    try {
      action();
      return count;
    } catch (...) {
      failure_ = std::current_exception();
      return count == 0 ? 1 : 0;
    }
  }
  static std::size_t on_header(char* data, std::size_t size, std::size_t count, void* self) {
    return static_cast<Transfer*>(self)->guarded(size * count, [&] {
      static_cast<Transfer*>(self)->header({data, size * count});
    });
  }
  static std::size_t on_bytes(char* data, std::size_t size, std::size_t count, void* self) {
    return static_cast<Transfer*>(self)->guarded(
        size * count, [&] { static_cast<Transfer*>(self)->bytes(data, size * count); });
  }
  static int on_progress(void* self, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
    auto& transfer = *static_cast<Transfer*>(self);
    if (transfer.file_ && transfer.request_->progress)
      transfer.request_->progress(transfer.file_->size(),
                                  transfer.request_->bytes > 0
                                      ? transfer.request_->bytes
                                      : transfer.response_.total.value_or(0));
    return interrupted() ? 1 : 0;
  }

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

[[noreturn]] void refuse_status(const std::string& url, long status) {
  const std::string problem = fmt::format("the server answers {}", status);
  if (status == 401 || status == 403)
    throw ModelError(
        url, problem + ": not without permission",
        "accept the model's terms on its page, and put your access token into HF_TOKEN");
  if (status == 404) throw ModelError(url, problem + ": there is no such file", "check the name");
  throw ModelError(url, problem, "try again later");
}

bool passes(CURLcode code, long status) {
  if (code == CURLE_OK) return status == 408 || status == 429 || status >= 500;
  // A server that cannot be found or trusted will not be in a second either.
  constexpr CURLcode kFinal[] = {CURLE_UNSUPPORTED_PROTOCOL, CURLE_URL_MALFORMAT,
                                 CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY,
                                 CURLE_TOO_MANY_REDIRECTS,   CURLE_PEER_FAILED_VERIFICATION,
                                 CURLE_ABORTED_BY_CALLBACK,  CURLE_WRITE_ERROR,
                                 CURLE_RANGE_ERROR,          CURLE_OUT_OF_MEMORY};
  return std::find(std::begin(kFinal), std::end(kFinal), code) == std::end(kFinal);
}

/// Counts failures that brought nothing new, and waits longer after each.
class Patience {
 public:
  /// False when it is at its end.
  bool wait(std::uint64_t bytes) {
    if (bytes > best_) failures_ = 0;
    best_ = std::max(best_, bytes);
    if (++failures_ > 5) return false;
    const auto until =
        std::chrono::steady_clock::now() + std::chrono::milliseconds(100 << failures_);
    while (!interrupted() && std::chrono::steady_clock::now() < until)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return !interrupted();
  }

 private:
  int failures_ = 0;
  std::uint64_t best_ = 0;
};

[[noreturn]] void interrupted_at(const fs::path& path) {
  throw ModelError(path.string(), "is not whole: interrupted", kAgain);
}

/// The hub gives the SHA-256 of a large file as its ETag.
std::string linked_sha256(const Response& response) {
  std::string text = response.linked_etag;
  text.erase(std::remove(text.begin(), text.end(), '"'), text.end());
  const bool hex = text.size() == 64 && std::all_of(text.begin(), text.end(), [](unsigned char c) {
                     return std::isxdigit(c);
                   });
  return hex ? text : std::string();
}

void check(const DownloadRequest& request, const fs::path& file, const std::string& expected,
           DownloadResult& result) {
  result.sha256 = sha256_of(file);
  result.checked = !expected.empty();
  std::string wanted = expected;
  std::transform(wanted.begin(), wanted.end(), wanted.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (!wanted.empty() && wanted != result.sha256)
    throw ModelError(request.target.string(),
                     fmt::format("has the SHA-256 {}, and not {}", result.sha256, wanted),
                     "the file is damaged or another one: fetch it again");
}

}  // namespace

bool downloads_supported() { return true; }

DownloadResult download(const DownloadRequest& request) {
  DownloadResult result;
  std::error_code error;
  if (fs::is_directory(request.target, error))
    throw ModelError(request.target.string(), "is a folder",
                     "name a file, or end the folder with a slash");
  if (fs::is_regular_file(request.target, error)) {
    result.was_there = true;
    result.bytes = fs::file_size(request.target);
    if (request.bytes > 0 && result.bytes != request.bytes)
      throw ModelError(request.target.string(),
                       fmt::format("has {} bytes, and not {}", result.bytes, request.bytes),
                       "another file of that name is there: remove it");
    check(request, request.target, request.sha256, result);
    return result;
  }
  if (request.target.has_parent_path()) fs::create_directories(request.target.parent_path(), error);
  PartFile part(request);
  result.resumed_at = part.size();
  Patience patience;
  std::string linked;
  while (true) {
    Transfer transfer(request.url, request.token);
    transfer.into(part, request);
    const CURLcode code = transfer.run();
    if (code == CURLE_OK) transfer.finish();
    const Response& response = transfer.response();
    if (!response.linked_etag.empty()) linked = linked_sha256(response);
    if (interrupted() && code != CURLE_OK) interrupted_at(part.path());
    const bool beyond = response.status == 416 && part.size() > 0;
    if (beyond && response.total == part.size()) break;
    if (beyond) {
      part.begin({});
      result.resumed_at = 0;
      continue;
    }
    if (code == CURLE_OK && (response.status == 200 || response.status == 206)) {
      if (response.status == 200) result.resumed_at = 0;
      const std::uint64_t expected =
          request.bytes > 0 ? request.bytes : response.total.value_or(part.size());
      if (part.size() == expected) break;
      if (response.total && part.size() == *response.total)
        throw ModelError(request.url,
                         fmt::format("the file has {} bytes, and not {}", part.size(), expected),
                         "is this the right file?");
    } else if (code == CURLE_OK && !passes(code, response.status)) {
      if (part.size() == 0) part.discard();
      refuse_status(request.url, response.status);
    } else if (!passes(code, response.status)) {
      if (part.size() == 0) part.discard();
      throw ModelError(request.url, transfer.problem(code), "check the address and the network");
    }
    if (!patience.wait(part.size())) {
      if (interrupted()) interrupted_at(part.path());
      if (part.size() == 0) part.discard();
      if (code == CURLE_OK && response.status >= 400) refuse_status(request.url, response.status);
      throw ModelError(
          request.url,
          fmt::format("the transfer stops after {} bytes: {}", part.size(), transfer.problem(code)),
          kAgain);
    }
  }
  result.bytes = part.size();
  try {
    check(request, part.path(), request.sha256.empty() ? linked : request.sha256, result);
  } catch (const ModelError&) {
    if (!interrupted()) part.discard();  // another attempt would go on from damaged bytes
    throw;
  }
  part.move_to(request.target);
  return result;
}

std::string fetch_text(const std::string& url, const std::string& token) {
  Patience patience;
  while (true) {
    Transfer transfer(url, token);
    const CURLcode code = transfer.run();
    const Response& response = transfer.response();
    if (code == CURLE_OK && response.status == 200) return response.text;
    if (!passes(code, response.status) || !patience.wait(0)) {
      if (interrupted()) throw ModelError(url, "interrupted", {});
      if (code == CURLE_OK) refuse_status(url, response.status);
      throw ModelError(url, transfer.problem(code), "check the address and the network");
    }
  }
}

}  // namespace mulciber::apps

#endif
