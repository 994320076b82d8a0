// Paths of test data, and temporary folders.
#pragma once

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <initializer_list>
#include <iterator>
#include <string>
#include <system_error>
#include <vector>

#include <unistd.h>

namespace mulciber::tests {

/// Small files that are part of the repository (tests/data).
std::filesystem::path data_dir();
/// The repository root.
std::filesystem::path source_dir();
/// Models in the repository: the bundled translator, a text encoder, and a classifier of digits.
inline std::string bundled_model() { return (source_dir() / "assets/en-de").string(); }
inline std::string small_encoder() { return (data_dir() / "roberta_cls").string(); }
inline std::string digits() { return (source_dir() / "assets/vit-digits").string(); }

/// The path of the `mulciber` command. A test that runs it says so in tests/CMakeLists.txt, or the
/// command may not be built.
std::filesystem::path command_file();

/// The reference models: the folder named by MULCIBER_FIXTURES, else ../shared/fixtures beside the
/// repository; empty when the folder does not exist, and then the test should MULCIBER_SKIP.
inline std::filesystem::path fixtures_dir() {
  const char* value = std::getenv("MULCIBER_FIXTURES");
  const std::filesystem::path path = value != nullptr
                                         ? std::filesystem::path(value)
                                         : source_dir().parent_path() / "shared/fixtures";
  return std::filesystem::is_directory(path) ? path : std::filesystem::path();
}

/// The settings of a long test that a run takes: with MULCIBER_SHARE="i,n" setting i and every n-th
/// after it, at least one, so that runs with masks and layers share the settings; without it, all
/// of them.
template <typename Settings>
auto share_of(const Settings& settings) {
  size_t first = 0, step = 1;
  const char* text = std::getenv("MULCIBER_SHARE");
  if (text && std::sscanf(text, "%zu,%zu", &first, &step) == 2) step = std::max<size_t>(step, 1);
  const size_t count = std::size(settings);
  std::vector<std::decay_t<decltype(*std::begin(settings))>> taken;
  for (size_t i = first % std::min(step, count); i < count; i += step)
    taken.push_back(*std::next(std::begin(settings), static_cast<std::ptrdiff_t>(i)));
  return taken;
}
template <typename Setting>
std::vector<Setting> share_of(std::initializer_list<Setting> settings) {
  return share_of<std::initializer_list<Setting>>(settings);
}

/// A fresh empty folder, removed with everything in it at the end of the scope.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "mulciber-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr)
      throw std::system_error(errno, std::generic_category(), "mkdtemp " + name);
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace mulciber::tests
