// Files that commands leave behind.
#pragma once

#include <filesystem>
#include <string_view>

namespace mulciber::apps {

/// Writes a file whole or not at all, as replace_file() (base/replace_file.h). Throws Error naming
/// it and the reason.
void write_whole_file(const std::filesystem::path& path, std::string_view content);

}  // namespace mulciber::apps
