// Known failures, as data: driver, cases, reason, and where to read more.
#pragma once

#include <array>
#include <filesystem>
#include <string>
#include <vector>

#include "conformance/records/record.h"

namespace mulciber::conformance {

struct Waiver {
  using Version = std::array<uint32_t, 3>;
  static constexpr Version kNewest = {0xffffffffu, 0xffffffffu, 0xffffffffu};

  std::string driver;               // Fingerprint::driver_id; "" for any
  Version from = {}, to = kNewest;  // driver versions, inclusive
  std::string device;               // part of the device's name; "" for any
  std::string cases;                // a glob over names
  std::string reason;
  std::string link;
};

/// The waivers built into the suite.
const std::vector<Waiver>& known_waivers();

/// Reads a file: [{"driver": "mesa_llvmpipe", "from": "22.3.0", "to": "22.3.6", "device": "LLVM",
/// "cases": "mulciber.matmul.*", "reason": "...", "link": "..."}]; cases and reason are mandatory.
/// Throws ModelError.
std::vector<Waiver> read_waivers(const std::filesystem::path& file);

/// Whether a waiver applies to that driver, version and device.
bool applies(const Waiver& waiver, const Fingerprint& fingerprint);

/// The waivers of one run.
class Waivers {
 public:
  Waivers(const std::vector<Waiver>& all, const Fingerprint& fingerprint);
  /// Changes a bad status to Waiver where a waiver covers the case.
  void apply(CaseRecord& record);
  /// One line for each waiver for this device that covered none of `cases`, when all cases have
  /// run: either no case has that name, or none of them fails any more.
  std::vector<std::string> unused(const std::vector<CaseRecord>& cases) const;

 private:
  struct Entry {
    Waiver waiver;
    bool used = false;
  };
  std::vector<Entry> entries_;
};

}  // namespace mulciber::conformance
