// Opening a model's files.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "models/families/open_model.h"

namespace mulciber {

/// Opens a model. Throws as Checkpoint. open_model() (mulciber/open_model.h) shares the result.
OpenModel open_files(const std::filesystem::path& path,
                     Checkpoint::Contents contents = Checkpoint::Contents::kModel);
OpenModel open_files(std::vector<LentFile> files, const std::string& name);

}  // namespace mulciber
