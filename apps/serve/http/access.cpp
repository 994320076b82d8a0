#include "apps/serve/http/access.h"

#include <strings.h>

#include <algorithm>
#include <fstream>
#include <string_view>

#include "apps/serve/http/api_error.h"
#include "apps/serve/http/http_server.h"
#include "mulciber/error.h"

namespace mulciber::apps::serve {
namespace {

/// Takes as long for a wrong key as for the right one, so that the time reveals nothing.
bool equal_keys(std::string_view one, std::string_view other) {
  unsigned different = one.size() == other.size() ? 0 : 1;
  for (size_t i = 0; i < one.size(); ++i)
    different |= static_cast<unsigned char>(one[i]) ^
                 static_cast<unsigned char>(other.empty() ? 0 : other[i % other.size()]);
  return different == 0;
}

/// The name in a Host header: "localhost" of "localhost:8080", "::1" of "[::1]:8080".
std::string_view name_of_host(std::string_view host) {
  if (host.starts_with('[')) return host.substr(1, host.find(']') - 1);
  return host.substr(0, host.find(':'));
}

}  // namespace

bool is_loopback(const std::string& host) {
  // Only addresses count: a name such as 127.example.org may point anywhere.
  const bool numbers = host.find_first_not_of("0123456789.") == std::string::npos;
  return host == "localhost" || host == "::1" || (numbers && host.starts_with("127."));
}

AccessRules::AccessRules(const HttpSettings& settings)
    : keys_(settings.keys), origins_(settings.origins), local_(is_loopback(settings.host)) {}

void AccessRules::check_key(const std::string& authorization) const {
  if (keys_.empty()) return;
  constexpr std::string_view kScheme = "Bearer ";
  const std::string_view given = authorization;
  bool known = false;
  if (strncasecmp(authorization.c_str(), kScheme.data(), kScheme.size()) == 0)
    for (const std::string& key : keys_) known |= equal_keys(given.substr(kScheme.size()), key);
  if (!known)
    throw ApiError(401,
                   given.empty() ? "a key is needed: send the header Authorization: Bearer KEY"
                                 : "the key is not one of this server's",
                   "", "invalid_api_key");
}

std::string AccessRules::check_origin(const std::string& origin, const std::string& host) const {
  if (local_ && keys_.empty() && !host.empty() && !is_loopback(std::string(name_of_host(host))))
    throw ApiError(403, "this server is asked as localhost alone, unless it has a key or --host",
                   "", "unknown_host");
  if (origin.empty()) return {};
  if (std::ranges::count(origins_, "*")) return "*";
  if (std::ranges::count(origins_, origin)) return origin;
  const size_t name = origin.find("://");
  if (name != std::string::npos && std::string_view(origin).substr(name + 3) == host) return {};
  throw ApiError(403, "pages from this origin may not ask; start the server with --cors ORIGIN", "",
                 "unknown_origin");
}

std::vector<std::string> read_keys(const std::string& file) {
  std::ifstream in(file);
  std::vector<std::string> keys;
  for (std::string line; std::getline(in, line);) {
    const size_t begin = line.find_first_not_of(" \t\r");
    if (begin == std::string::npos || line[begin] == '#') continue;
    keys.push_back(line.substr(begin, line.find_last_not_of(" \t\r") + 1 - begin));
  }
  if (keys.empty())
    throw SettingError("api-key-file", "'" + file + "' cannot be read, or holds no key",
                       "give a file with one key a line");
  return keys;
}

}  // namespace mulciber::apps::serve
