// Bytes as text, for pages and the server.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mulciber::apps {

/// Base64 with padding: RFC 4648, section 4.
std::string base64(std::span<const std::byte> bytes);
/// The bytes of a base64 text; no value where it is malformed.
std::optional<std::vector<std::byte>> from_base64(std::string_view text);

}  // namespace mulciber::apps
