#include "models/loading/open_files.h"

#include <utility>

#include "models/loading/read_architecture.h"

namespace mulciber {

OpenModel open_files(const std::filesystem::path& path, Checkpoint::Contents contents) {
  return {path, contents, read_architecture};
}

OpenModel open_files(std::vector<LentFile> files, const std::string& name) {
  return {std::move(files), name, read_architecture};
}

std::shared_ptr<const OpenModel> open_model(const std::string& path) {
  return std::make_shared<const OpenModel>(path, Checkpoint::Contents::kModel, read_architecture);
}

std::shared_ptr<const OpenModel> open_model(std::vector<LentFile> files, const std::string& name) {
  return std::make_shared<const OpenModel>(std::move(files), name, read_architecture);
}

}  // namespace mulciber
