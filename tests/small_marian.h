// The small Marian model of tests/data, and changed copies of it.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>

#include "checkpoints/json.h"
#include "tests/model_error.h"
#include "tests/support.h"

namespace mulciber::tests {

inline std::filesystem::path small_marian() { return data_dir() / "marian"; }

/// A copy of the small model with `change` applied to its config.json.
template <typename Change>
void copy_model(const std::filesystem::path& to, Change&& change) {
  for (const std::filesystem::directory_entry& file :
       std::filesystem::directory_iterator(small_marian()))
    std::filesystem::copy(file.path(), to / file.path().filename());
  Json config = read_json(to / "config.json");
  change(config);
  std::filesystem::permissions(to / "config.json", std::filesystem::perms::owner_all);
  write_file(to / "config.json", config.dump());
}

}  // namespace mulciber::tests
