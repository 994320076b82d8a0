#include "ppm.h"

#include <fstream>

#include <mulciber/error.h>

void write_ppm(const std::string& path, VkExtent2D extent, std::span<const uint8_t> rgba) {
  std::ofstream file(path, std::ios::binary);
  file << "P6\n" << extent.width << ' ' << extent.height << "\n255\n";
  for (size_t i = 0; i < rgba.size(); ++i) {
    if (i % 4 != 3) file.put(static_cast<char>(rgba[i]));
  }
  if (!file.flush()) throw mulciber::Error(path, "cannot be written", "is there such a folder?");
}
