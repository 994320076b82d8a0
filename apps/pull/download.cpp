#include "apps/pull/download.h"

#include "apps/cli/command.h"
#include "base/clock.h"
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

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <thread>

#include "apps/pull/part_file.h"
#include "apps/pull/transfer.h"

namespace mulciber::apps {
namespace {

namespace fs = std::filesystem;

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
  // A server that cannot be found or trusted will not be in a second either, so these errors are
  // final.
  constexpr CURLcode kFinal[] = {CURLE_UNSUPPORTED_PROTOCOL, CURLE_URL_MALFORMAT,
                                 CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY,
                                 CURLE_TOO_MANY_REDIRECTS,   CURLE_PEER_FAILED_VERIFICATION,
                                 CURLE_ABORTED_BY_CALLBACK,  CURLE_WRITE_ERROR,
                                 CURLE_RANGE_ERROR,          CURLE_OUT_OF_MEMORY};
  return std::find(std::begin(kFinal), std::end(kFinal), code) == std::end(kFinal);
}

/// Counts failures in a row that brought no new bytes, and waits longer after each.
class Patience {
 public:
  /// Returns false after too many failures.
  bool wait(std::uint64_t bytes) {
    if (bytes > best_) failures_ = 0;
    best_ = std::max(best_, bytes);
    if (++failures_ > 5) return false;
    const auto until = Clock::now() + std::chrono::milliseconds(100 << failures_);
    while (!interrupted() && Clock::now() < until)
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
    if (!interrupted()) part.discard();  // another attempt would continue damaged bytes
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
