#include "checkpoints/file_name.h"

namespace mulciber {

std::string name_of_path(const std::filesystem::path& path) {
  // Of an empty path, and in a folder that is gone, there is none: whoever opens it says so.
  std::error_code ignored;
  const std::filesystem::path whole = std::filesystem::absolute(path, ignored).lexically_normal();
  const std::filesystem::path last =
      whole.has_filename() ? whole.filename() : whole.parent_path().filename();
  return last.extension() == ".gguf" ? last.stem().string() : last.string();
}

}  // namespace mulciber
