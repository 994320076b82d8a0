#include "apps/cli/npy.h"

#include <fmt/format.h>

#include <bit>
#include <fstream>

#include "mulciber/error.h"

namespace mulciber::apps {

void write_npy(const std::string& path, std::span<const std::vector<float>> rows, size_t columns) {
  static_assert(std::endian::native == std::endian::little);
  std::string header = fmt::format(
      "{{'descr': '<f4', 'fortran_order': False, 'shape': ({}, {}), }}", rows.size(), columns);
  // The header with the ten bytes before it is padded so that it ends, with a line feed, at a
  // multiple of 64.
  while ((10 + header.size() + 1) % 64 != 0) header += ' ';
  header += '\n';
  std::string file = "\x93NUMPY";
  file += '\x01';
  file += '\0';
  file += static_cast<char>(header.size() & 0xff);
  file += static_cast<char>(header.size() >> 8);
  file += header;
  std::ofstream out(path, std::ios::binary);
  out.write(file.data(), static_cast<std::streamsize>(file.size()));
  for (const std::vector<float>& row : rows)
    out.write(reinterpret_cast<const char*>(row.data()),
              static_cast<std::streamsize>(row.size() * sizeof(float)));
  out.close();
  if (!out) throw ModelError(path, "could not be written", "is there room, and may it be written?");
}

}  // namespace mulciber::apps
