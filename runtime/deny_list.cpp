#include "runtime/deny_list.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <nlohmann/json.hpp>

#include "base/hash.h"

namespace mulciber {
namespace {

constexpr uint32_t kCrashes = 2;  // one crash may be a kill from outside, two in one row are not

}  // namespace

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
    : file_(device, folder, "verdicts") {
  read();
}

DenyList::~DenyList() { end_testing(); }

void DenyList::read() {
  entries_.clear();
  const nlohmann::json rows = file_.read("rows");
  try {
    for (const auto& [row, value] : rows.items()) {
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
    entries_.clear();  // a damaged file: rows are tested again
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
  file_.write("rows", std::move(rows));
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
  std::filesystem::path path = file();
  if (path.empty()) return false;
  path += ".lock";
  const int lock = ::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0644);
  if (lock < 0) return false;  // the folder is not writable
  if (::flock(lock, LOCK_EX | (wait ? 0 : LOCK_NB)) != 0 && errno == EWOULDBLOCK) {
    ::close(lock);
    return false;
  }
  lock_ = lock;
  read();
  // No other process is testing, so a test that began and did not end belongs to a dead process.
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
  // An earlier verdict stands until this test gives a new one.
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
