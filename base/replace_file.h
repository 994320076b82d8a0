// Files that several processes read while one writes.
#pragma once

#include <filesystem>
#include <string_view>

namespace mulciber {

/// Writes beside the file first, then renames: whoever reads gets the old one or the new one,
/// whole. False when it could not be written; nothing half-written is left then.
bool replace_file(const std::filesystem::path& file, std::string_view bytes);

}  // namespace mulciber
