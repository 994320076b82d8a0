// A malformed model file must end in one ModelError that names the culprit.
#pragma once

#include <fstream>
#include <optional>
#include <string>
#include <string_view>

#include "mulciber/error.h"
#include "tests/support.h"

namespace mulciber::tests {

/// The message of the ModelError that `action` throws; nothing when it throws none. Other
/// exceptions pass through and fail the test.
template <typename Action>
std::optional<std::string> model_error(Action&& action) {
  try {
    action();
  } catch (const ModelError& error) {
    return error.what();
  }
  return std::nullopt;
}

inline std::filesystem::path write_file(const std::filesystem::path& path, std::string_view bytes) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!file) throw std::runtime_error("cannot write " + path.string());
  return path;
}

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace mulciber::tests
