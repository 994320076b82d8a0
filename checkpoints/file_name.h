// What a model or an adapter is called after its path.
#pragma once

#include <filesystem>
#include <string>

namespace mulciber {

/// A folder's or file's name, without .gguf.
std::string name_of_path(const std::filesystem::path& path);

}  // namespace mulciber
