// The name of a model or an adapter, from its path.
#pragma once

#include <filesystem>
#include <string>

namespace mulciber {

/// Name of a folder or file, without .gguf.
std::string name_of_path(const std::filesystem::path& path);

}  // namespace mulciber
