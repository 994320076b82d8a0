#include "apps/cli/base64.h"

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

std::optional<std::vector<std::byte>> from_base64(std::string_view text) {
  const auto value_of = [](char digit) -> int {
    if (digit >= 'A' && digit <= 'Z') return digit - 'A';
    if (digit >= 'a' && digit <= 'z') return digit - 'a' + 26;
    if (digit >= '0' && digit <= '9') return digit - '0' + 52;
    return digit == '+' ? 62 : digit == '/' ? 63 : -1;
  };
  if (text.size() % 4 != 0) return std::nullopt;
  for (int padding = 0; padding < 2 && text.ends_with('='); ++padding) text.remove_suffix(1);
  std::vector<std::byte> bytes;
  bytes.reserve(text.size() * 3 / 4);
  uint32_t group = 0;
  int bits = 0;
  for (const char digit : text) {
    const int value = value_of(digit);
    if (value < 0) return std::nullopt;
    group = group << 6 | static_cast<uint32_t>(value);
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    bytes.push_back(static_cast<std::byte>(group >> bits & 0xff));
  }
  return bytes;
}

}  // namespace mulciber::apps
