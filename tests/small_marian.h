// The small Marian model of tests/data, and changed copies of it.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

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

/// A copy of the small model whose vocabulary has two languages: "deu" and "fra", whose tokens
/// stand before a source.
inline void copy_multilingual(const std::filesystem::path& to) {
  copy_model(to, [](Json&) {});
  const std::filesystem::path path = to / "vocab.json";
  Json vocabulary = read_json(path);
  for (const auto& [piece, language] : {std::pair("ß", ">>deu<<"), std::pair("ä", ">>fra<<")}) {
    vocabulary[language] = vocabulary.at(piece);
    vocabulary.erase(piece);
  }
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  write_file(path, vocabulary.dump());
}

}  // namespace mulciber::tests
