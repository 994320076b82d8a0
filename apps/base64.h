// Bytes as text, for the pages.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace mulciber::apps {

/// Base64 with padding: RFC 4648, section 4.
std::string base64(std::span<const std::byte> bytes);

}  // namespace mulciber::apps
