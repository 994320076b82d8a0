// Where the files of a model are looked for.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "checkpoints/model_file.h"

namespace mulciber {

/// The file system, or a list of files that the host lends and nothing else.
class ModelFiles {
 public:
  /// The file system.
  ModelFiles() = default;
  /// Throws ModelError for names that stand twice, are empty, or lead outside of a folder.
  explicit ModelFiles(std::vector<LentFile> files);

  /// A regular file. Of the file system also what open() is to refuse: folders, pipes.
  bool exists(const std::filesystem::path& path) const;
  /// Throws as ModelFile, and ModelError where it is not in the list.
  ModelFile open(const std::filesystem::path& path) const;
  /// Files right in a folder, in no order; none where there is no such folder.
  std::vector<std::filesystem::path> list(const std::filesystem::path& folder) const;

 private:
  bool lent_ = false;
  std::map<std::string, LentFile> files_;
};

}  // namespace mulciber
