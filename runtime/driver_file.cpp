#include "runtime/driver_file.h"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "base/hash.h"
#include "base/replace_file.h"
#include "runtime/pipeline.h"

namespace mulciber {
namespace {

constexpr int kFormat = 1;
constexpr uint64_t kLargestFile = 4u << 20;

// Identifies a driver version and the way in which it compiles rows: another subgroup size (limits,
// or a setting of the driver) makes other pipelines.
std::string driver_identity(const Capabilities& c) {
  std::string uuid;
  for (uint8_t byte : c.pipeline_cache_uuid) uuid += fmt::format("{:02x}", byte);
  return fmt::format(
      "{}; vendor {:#x} device {:#x}; driver {} {} {} ({:#x}); cache {}; subgroup {}{}", c.name,
      c.vendor_id, c.device_id, static_cast<int>(c.driver_id), c.driver_name, c.driver_info,
      c.packed_driver_version, uuid, c.subgroup_size,
      c.has(kSubgroupSizeControl) ? " required" : "");
}

}  // namespace

DriverFile::DriverFile(const Capabilities& device, const std::string& cache_folder,
                       std::string_view name)
    : identity_(driver_identity(device)) {
  if (const std::filesystem::path folder = writable_cache_folder(cache_folder); !folder.empty()) {
    Fnv1a hash;
    hash.add(identity_);
    path_ = folder / fmt::format("{}-{:016x}.json", name, hash.value());
  }
}

nlohmann::json DriverFile::read(const char* key) const {
  nlohmann::json nothing = nlohmann::json::object();
  if (path_.empty()) return nothing;
  std::error_code error;
  if (const uint64_t size = std::filesystem::file_size(path_, error); error || size > kLargestFile)
    return nothing;
  std::ifstream in(path_, std::ios::binary);
  nlohmann::json json = nlohmann::json::parse(in, nullptr, false);
  const auto is = [&json](const char* name, const nlohmann::json& value) {
    const auto found = json.find(name);
    return found != json.end() && *found == value;
  };
  if (!json.is_object() || !is("format", kFormat) || !is("driver", identity_)) return nothing;
  const auto found = json.find(key);
  return found != json.end() && found->is_object() ? std::move(*found) : nothing;
}

bool DriverFile::write(const char* key, nlohmann::json content) const {
  if (path_.empty()) return false;
  const nlohmann::json json = {
      {"format", kFormat}, {"driver", identity_}, {key, std::move(content)}};
  const std::string text = json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace);
  return replace_file(path_, text + '\n').empty();
}

}  // namespace mulciber
