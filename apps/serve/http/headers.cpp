#include "apps/serve/http/headers.h"

#include <algorithm>
#include <cctype>

#include "apps/serve/http/ids.h"

namespace mulciber::apps::serve {

std::string request_id(const std::string& given) {
  constexpr size_t kLongest = 128;
  const bool usable = !given.empty() && given.size() <= kLongest &&
                      std::ranges::all_of(given, [](unsigned char c) { return c > 32 && c < 127; });
  return usable ? given : new_id("req");
}

std::string allowed_headers(const std::string& named) {
  constexpr size_t kLongest = 2048;
  const bool usable =
      !named.empty() && named.size() <= kLongest && std::ranges::all_of(named, [](unsigned char c) {
        return std::isalnum(c) || c == '-' || c == '_' || c == ',' || c == ' ';
      });
  return usable ? named : "Authorization, Content-Type, X-Request-Id";
}

}  // namespace mulciber::apps::serve
