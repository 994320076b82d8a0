#include "checkpoints/file_name.h"

namespace mulciber {

std::string name_of_path(const std::filesystem::path& path) {
  const std::filesystem::path whole = std::filesystem::absolute(path).lexically_normal();
  const std::filesystem::path last =
      whole.has_filename() ? whole.filename() : whole.parent_path().filename();
  return last.extension() == ".gguf" ? last.stem().string() : last.string();
}

}  // namespace mulciber
