#include "runtime/deny_list.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/hash.h"
#include "base/replace_file.h"
#include "runtime/pipeline.h"

namespace mulciber {
namespace {

constexpr int kFormat = 1;
constexpr uint32_t kCrashes = 2;  // one may be somebody's kill, two in the same row are not

}  // namespace

// One driver version, and one way in which it compiles rows: subgroups of another size (limits, or
// a setting of the driver) make other pipelines.
std::string driver_identity(const Capabilities& c) {
  std::string uuid;
  for (uint8_t byte : c.pipeline_cache_uuid) uuid += fmt::format("{:02x}", byte);
  return fmt::format(
      "{}; vendor {:#x} device {:#x}; driver {} {} {} ({:#x}); cache {}; subgroup {}{}", c.name,
      c.vendor_id, c.device_id, static_cast<int>(c.driver_id), c.driver_name, c.driver_info,
      c.packed_driver_version, uuid, c.subgroup_size,
      c.has(kSubgroupSizeControl) ? " required" : "");
}

uint64_t row_hash(const Kernel& kernel) {
  Fnv1a hash;
  hash.add(kernel.spirv);
  for (const auto& [constant, value] : kernel.constants) {
    hash.add(static_cast<uint32_t>(constant));
    hash.add(value);
  }
  return hash.value();
}

DenyList::DenyList(const Capabilities& device, const std::string& folder)
    : identity_(driver_identity(device)) {
  if (std::filesystem::path path = writable_cache_folder(folder); !path.empty()) {
    Fnv1a hash;
    hash.add(identity_);
    file_ = path / fmt::format("verdicts-{:016x}.json", hash.value());
  }
  read();
}

DenyList::~DenyList() { end_testing(); }

void DenyList::read() {
  entries_.clear();
  if (file_.empty()) return;
  std::error_code error;
  constexpr uint64_t kLargest = 4u << 20;
  if (const uint64_t size = std::filesystem::file_size(file_, error); error || size > kLargest)
    return;
  std::ifstream in(file_, std::ios::binary);
  const nlohmann::json json = nlohmann::json::parse(in, nullptr, false);
  try {
    if (!json.is_object() || json.at("format") != kFormat || json.at("driver") != identity_) return;
    for (const auto& [row, value] : json.at("rows").items()) {
      Entry entry;
      entry.hash = std::stoull(value.at("hash").get<std::string>(), nullptr, 16);
      const std::string verdict = value.at("verdict");
      entry.verdict = verdict == "passed"   ? Verdict::kPassed
                      : verdict == "failed" ? Verdict::kFailed
                                            : Verdict::kUntested;
      entry.begun = value.value("begun", 0u);
      entry.reason = value.value("reason", std::string());
      entries_[row] = std::move(entry);
    }
  } catch (const std::exception&) {
    entries_.clear();  // of another format, or damaged: rows are tested again
  }
}

void DenyList::write() const {
  if (lock_ < 0) return;
  nlohmann::json rows = nlohmann::json::object();
  for (const auto& [row, entry] : entries_) {
    nlohmann::json& value = rows[row];
    value["hash"] = fmt::format("{:016x}", entry.hash);
    value["verdict"] = entry.verdict == Verdict::kPassed   ? "passed"
                       : entry.verdict == Verdict::kFailed ? "failed"
                                                           : "none";
    if (entry.begun > 0) value["begun"] = entry.begun;
    if (!entry.reason.empty()) value["reason"] = entry.reason;
  }
  const nlohmann::json json = {{"format", kFormat}, {"driver", identity_}, {"rows", rows}};
  replace_file(file_, json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + '\n');
}

const DenyList::Entry* DenyList::find(const Kernel& kernel) const {
  const auto found = entries_.find(kernel.id);
  return found == entries_.end() || found->second.hash != row_hash(kernel) ? nullptr
                                                                           : &found->second;
}

DenyList::Verdict DenyList::verdict(const Kernel& kernel) const {
  const Entry* entry = find(kernel);
  return entry ? entry->verdict : Verdict::kUntested;
}

std::string DenyList::reason(const Kernel& kernel) const {
  const Entry* entry = find(kernel);
  return entry ? entry->reason : "";
}

bool DenyList::suspect(const Kernel& kernel) const {
  const Entry* entry = find(kernel);
  return entry && entry->begun > 0;
}

void DenyList::apply(Capabilities& device) const {
  if (entries_.empty()) return;
  for (const Kernel& kernel : kernels()) {
    const Entry* entry = find(kernel);
    if (!entry) continue;
    if (entry->verdict == Verdict::kPassed) device.passed_rows.push_back(kernel.id);
    if (entry->verdict == Verdict::kFailed) {
      device.denied_rows.push_back(kernel.id);
      device.denied_reasons.push_back(entry->reason);
    }
  }
}

bool DenyList::begin_testing(bool wait) {
  if (file_.empty()) return false;
  std::filesystem::path path = file_;
  path += ".lock";
  const int lock = ::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0644);
  if (lock < 0) return false;  // a folder that cannot be written to
  if (::flock(lock, LOCK_EX | (wait ? 0 : LOCK_NB)) != 0 && errno == EWOULDBLOCK) {
    ::close(lock);
    return false;
  }
  lock_ = lock;
  read();
  // Nobody else is testing, so whoever began and did not end is dead.
  bool changed = false;
  for (auto& [row, entry] : entries_) {
    if (entry.verdict == Verdict::kFailed || entry.begun < kCrashes) continue;
    entry.verdict = Verdict::kFailed;
    entry.reason = fmt::format("{} processes died in its self-test (crash or hang of the driver)",
                               entry.begun);
    changed = true;
  }
  if (changed) write();
  return true;
}

void DenyList::begin(const Kernel& kernel) {
  // An earlier verdict stands until there is a new one.
  if (!find(kernel)) entries_[kernel.id] = {row_hash(kernel)};
  ++entries_[kernel.id].begun;
  write();
}

void DenyList::pass(const Kernel& kernel) {
  entries_[kernel.id] = {row_hash(kernel), Verdict::kPassed, 0, ""};
  write();
}

void DenyList::fail(const Kernel& kernel, std::string reason) {
  entries_[kernel.id] = {row_hash(kernel), Verdict::kFailed, 0, std::move(reason)};
  write();
}

void DenyList::abandon(const Kernel& kernel) {
  entries_[kernel.id].begun = 0;
  write();
}

void DenyList::end_testing() {
  if (lock_ >= 0) ::close(lock_);
  lock_ = -1;
}

}  // namespace mulciber
