// Output files of commands.
#pragma once

#include <filesystem>
#include <string_view>

namespace mulciber::apps {

/// Writes a file whole or not at all, see replace_file() (base/replace_file.h). Throws Error naming
/// the file and the reason.
void write_whole_file(const std::filesystem::path& path, std::string_view content);

}  // namespace mulciber::apps
