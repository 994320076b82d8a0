// Verdicts of the self-test on kernel rows, one file per device and driver version beside the
// pipeline cache. A row that failed is never selected on that driver; Device::open reads the
// verdicts every time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "runtime/driver_file.h"

namespace mulciber {

/// Hash of the row's SPIR-V and constants, for which a verdict holds. Another build of the row is
/// tested again.
uint64_t row_hash(const Kernel& kernel);

class DenyList {
 public:
  /// Reads the file of this device, driver version and subgroup size. A file that is absent,
  /// truncated or damaged counts as empty. `cache_folder` is DeviceOptions::cache_folder.
  DenyList(const Capabilities& device, const std::string& cache_folder);
  ~DenyList();
  DenyList(const DenyList&) = delete;
  DenyList& operator=(const DenyList&) = delete;

  enum class Verdict : uint8_t { kUntested, kPassed, kFailed };
  Verdict verdict(const Kernel& kernel) const;
  /// Why a row failed; "" when it did not.
  std::string reason(const Kernel& kernel) const;
  /// Whether one process died in the row's test.
  bool suspect(const Kernel& kernel) const;
  /// Adds the rows that failed to the device's denied rows, and names those that passed.
  void apply(Capabilities& device) const;

  /// Takes the lock for testing, which one process at a time holds, and reads the file again. False
  /// when another process holds it (and `wait` is not set), or when there is no folder to write to.
  /// A row in which two processes died (a crash, or a hang that somebody ended) counts as failed
  /// from then on.
  bool begin_testing(bool wait);
  /// Writes to the file that the row's test begins, so that a crash in it is known afterwards.
  void begin(const Kernel& kernel);
  void pass(const Kernel& kernel);
  void fail(const Kernel& kernel, std::string reason);
  /// Undoes begin(): the test gave no verdict.
  void abandon(const Kernel& kernel);
  /// Releases the lock for testing.
  void end_testing();

  /// Path of the file; empty when there is no folder to write to.
  const std::filesystem::path& file() const { return file_.path(); }

 private:
  struct Entry {
    uint64_t hash = 0;
    Verdict verdict = Verdict::kUntested;
    uint32_t begun = 0;  // tests that began and did not end
    std::string reason;
  };
  const Entry* find(const Kernel& kernel) const;
  void read();
  void write() const;

  DriverFile file_;
  std::map<std::string, Entry> entries_;  // by row id
  int lock_ = -1;
};

}  // namespace mulciber
