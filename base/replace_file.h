// Files that are written whole or not at all.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace mulciber {

/// Writes beside the file first, then renames: whoever reads, now or after a crash, gets the old
/// one or the new one, whole. A link stays, and the file that it names is replaced; what stood
/// there keeps its mode. What is no regular file (a device, a pipe, a folder) is left alone.
/// Empty where it went well, else the reason in words that may follow the file's name, such as
/// "cannot be written: No space left on device"; nothing half-written is left then.
[[nodiscard]] std::string replace_file(const std::filesystem::path& file, std::string_view bytes);

}  // namespace mulciber
