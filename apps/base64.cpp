#include "apps/base64.h"

#include <cstdint>

namespace mulciber::apps {

std::string base64(std::span<const std::byte> bytes) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  const auto add = [&](uint32_t first, uint32_t second, uint32_t third) {
    const uint32_t group = first << 16 | second << 8 | third;
    for (const int shift : {18, 12, 6, 0}) text += kDigits[group >> shift & 63];
  };
  const auto at = [&](size_t i) { return i < bytes.size() ? static_cast<uint32_t>(bytes[i]) : 0u; };
  for (size_t i = 0; i < bytes.size(); i += 3) add(at(i), at(i + 1), at(i + 2));
  for (size_t i = bytes.size(); i % 3 != 0; ++i) text[text.size() - 1 - (i - bytes.size())] = '=';
  return text;
}

}  // namespace mulciber::apps
