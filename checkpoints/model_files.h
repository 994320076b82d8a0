// The set of files in which a model is found.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "checkpoints/model_file.h"

namespace mulciber {

/// The file system, or only a list of files that the application lends.
class ModelFiles {
 public:
  /// The file system.
  ModelFiles() = default;
  /// Throws ModelError for names that are repeated, empty, or lead outside of the folder.
  explicit ModelFiles(std::vector<LentFile> files);

  /// Whether a file exists. In the file system also true for folders and pipes, which open()
  /// refuses.
  bool exists(const std::filesystem::path& path) const;
  /// Throws as ModelFile does, and ModelError for a file that is not in the list.
  ModelFile open(const std::filesystem::path& path) const;
  /// Files directly in a folder, in no order; empty when there is no such folder.
  std::vector<std::filesystem::path> list(const std::filesystem::path& folder) const;

 private:
  bool lent_ = false;
  std::map<std::string, LentFile> files_;
};

}  // namespace mulciber
