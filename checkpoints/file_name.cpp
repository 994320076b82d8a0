#include "checkpoints/file_name.h"

namespace mulciber {

std::string name_of_path(const std::filesystem::path& path) {
  // An empty path, or one in a deleted folder, has no name; opening it reports the error.
  std::error_code ignored;
  const std::filesystem::path whole = std::filesystem::absolute(path, ignored).lexically_normal();
  const std::filesystem::path last =
      whole.has_filename() ? whole.filename() : whole.parent_path().filename();
  return last.extension() == ".gguf" ? last.stem().string() : last.string();
}

}  // namespace mulciber
