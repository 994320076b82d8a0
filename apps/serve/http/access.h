// Who may send requests: API keys, and the web pages whose scripts may.
#pragma once

#include <string>
#include <vector>

namespace mulciber::apps::serve {

struct HttpSettings;

class AccessRules {
 public:
  explicit AccessRules(const HttpSettings& settings);

  /// authorization: the header, "Bearer KEY". Throws ApiError (401).
  void check_key(const std::string& authorization) const;
  /// Checks the Origin header, in which a browser names the page that sends the request. Returns
  /// the value of Access-Control-Allow-Origin, or "" where none is needed: for no page, or the
  /// server's own. Throws ApiError (403) for another page, and for a Host of this server that only
  /// a page with a forged name would use: a server that listens on loopback alone, without a key,
  /// must be named by the machine's own names.
  std::string check_origin(const std::string& origin, const std::string& host) const;

 private:
  std::vector<std::string> keys_, origins_;
  bool local_ = true;
};

/// Whether an address can be reached from this machine alone.
bool is_loopback(const std::string& host);

/// Reads keys, one a line; blanks around them, empty lines and lines that begin with # do not
/// count. Throws SettingError where the file cannot be read or holds no key.
std::vector<std::string> read_keys(const std::string& file);

}  // namespace mulciber::apps::serve
