// Who may ask: keys, and the web pages whose scripts may.
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
  /// A browser says where the page comes from that asks. The value of Access-Control-Allow-Origin,
  /// or "" where none is needed: no page, or the server's own. Throws ApiError (403) for another
  /// page, and for a name of this server that only a page with a forged one would use: whoever
  /// listens on the machine alone, without a key, is asked by the machine's own names.
  std::string check_origin(const std::string& origin, const std::string& host) const;

 private:
  std::vector<std::string> keys_, origins_;
  bool local_ = true;
};

/// Whether only this machine reaches such an address.
bool is_loopback(const std::string& host);

/// One a line; blanks around them, empty lines and lines that begin with # do not count. Throws
/// SettingError where the file cannot be read or holds none.
std::vector<std::string> read_keys(const std::string& file);

}  // namespace mulciber::apps::serve
