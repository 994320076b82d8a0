// Files of one device and driver version beside the pipeline cache: verdicts (deny_list.h) and
// choices (choices.h).
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "runtime/kernel.h"

namespace mulciber {

/// A JSON file that belongs to one device, driver version and subgroup size. Another driver version
/// has another file, so an entry never outlives an update.
class DriverFile {
 public:
  /// `name` begins the file's name. `cache_folder` is DeviceOptions::cache_folder.
  DriverFile(const Capabilities& device, const std::string& cache_folder, std::string_view name);

  /// The object under `key`; empty where the file is absent, damaged, of another format or of
  /// another driver.
  nlohmann::json read(const char* key) const;
  /// Replaces the file by one with `content` under `key`. False when it cannot be written.
  bool write(const char* key, nlohmann::json content) const;

  /// Empty when there is no folder to write to.
  const std::filesystem::path& path() const { return path_; }

 private:
  std::string identity_;
  std::filesystem::path path_;
};

}  // namespace mulciber
