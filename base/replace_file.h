// Atomic replacement of files: a file is written whole or not at all.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace mulciber {

/// Writes beside the file first, then renames: a reader, now or after a crash, gets the old file or
/// the new one, whole. If `file` is a symbolic link, the link stays and its target is replaced; the
/// new file keeps the old one's mode. A path that is not a regular file (a device, a pipe, a
/// folder) is left alone. Returns "" on success, else the reason in words that may follow the
/// file's name, such as "cannot be written: No space left on device"; nothing half-written is left
/// then.
[[nodiscard]] std::string replace_file(const std::filesystem::path& file, std::string_view bytes);

}  // namespace mulciber
