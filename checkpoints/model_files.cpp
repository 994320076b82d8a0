#include "checkpoints/model_files.h"

#include "checkpoints/json.h"
#include "mulciber/error.h"

namespace mulciber {
namespace fs = std::filesystem;
namespace {

/// The form of a path in the list: without "./", and with "/" between its parts.
std::string key_of(const fs::path& path) { return path.lexically_normal().generic_string(); }

}  // namespace

ModelFiles::ModelFiles(std::vector<LentFile> files) : lent_(true) {
  for (LentFile& file : files) {
    const std::string key = key_of(file.name);
    const auto refuse = [&](const std::string& problem) {
      throw ModelError("file '" + printable(file.name) + "' of the list", problem,
                       "name files as in the model's folder: config.json, 1_Pooling/config.json");
    };
    if (key.empty() || key.ends_with('/') || key == "." || fs::path(key).is_absolute() ||
        key.starts_with(".."))
      refuse("is not the name of a file in a folder");
    if (!file.read && file.size != 0 && file.size != file.bytes.size())
      refuse("has a size but no function that reads it");
    if (!files_.emplace(key, std::move(file)).second) refuse("stands twice");
  }
}

bool ModelFiles::exists(const fs::path& path) const {
  if (lent_) return files_.contains(key_of(path));
  std::error_code ignored;
  return fs::exists(path, ignored);
}

ModelFile ModelFiles::open(const fs::path& path) const {
  if (!lent_) return {path};
  const auto found = files_.find(key_of(path));
  if (found == files_.end())
    throw ModelError(path.string(), "is not in the list of the model's files",
                     "add it, or leave out what names it");
  return {path, found->second};
}

std::vector<fs::path> ModelFiles::list(const fs::path& folder) const {
  std::vector<fs::path> result;
  if (lent_) {
    for (const auto& [name, file] : files_)
      if (key_of(fs::path(name).parent_path()) == key_of(folder)) result.emplace_back(name);
    return result;
  }
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored))
    if (entry.is_regular_file(ignored)) result.push_back(entry.path());
  return result;
}

}  // namespace mulciber
