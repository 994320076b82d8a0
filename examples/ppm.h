// Binary PPM files, which need no library.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include <vulkan/vulkan.h>

/// rgba: rows from the top. Throws mulciber::Error where the file cannot be written.
void write_ppm(const std::string& path, VkExtent2D extent, std::span<const uint8_t> rgba);
