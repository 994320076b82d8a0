// sha256_of() of download.h, by nettle.
#include "apps/pull/download.h"

#ifdef MULCIBER_DOWNLOADS
#include <nettle/sha2.h>

#include <array>
#include <fstream>
#include <vector>

#include "apps/cli/command.h"
#include "mulciber/error.h"

namespace mulciber::apps {

std::string sha256_of(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  sha256_ctx state;
  sha256_init(&state);
  std::vector<char> buffer(std::size_t{1} << 20);
  while (in) {
    if (interrupted())
      throw ModelError(file.string(), "was not checked to its end: interrupted", "start again");
    in.read(buffer.data(), static_cast<std::streamsize>(buffer.size()));
    sha256_update(&state, static_cast<std::size_t>(in.gcount()),
                  reinterpret_cast<const std::uint8_t*>(buffer.data()));
  }
  if (!in.eof()) throw ModelError(file.string(), "cannot be read", "check its permissions");
  std::array<std::uint8_t, SHA256_DIGEST_SIZE> digest;
  sha256_digest(&state, digest.size(), digest.data());
  std::string text;
  for (const std::uint8_t byte : digest) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

}  // namespace mulciber::apps
#endif
