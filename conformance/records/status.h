// What came of a case.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mulciber::conformance {

enum class Status : uint8_t {
  kPass,
  kFail,            // a wrong result, or a write outside the outputs
  kFlaky,           // not the same bits from run to run, or in another order of workgroups and
                    // subgroups, or a crash that did not happen again
  kNotSupported,    // the device lacks something; the detail names it
  kQualityWarning,  // within what the operation may lose, but worse than the row is expected to be
  kMistrusted,      // the inputs make the check meaningless
  kResourceError,   // out of memory
  kTimeout,
  kCrash,
  kDeviceLost,
  kInternalError,  // a fault of the suite
  kWaiver,         // fails, and is known to
};
inline constexpr int kStatusCount = 12;

/// "Pass", "NotSupported", ...
const char* name_of(Status status);
/// What it means, in a sentence, for a person.
const char* meaning_of(Status status);
/// The status of that name, or nothing.
std::optional<Status> status_from(std::string_view name);
/// Whether a run with such a case may end with exit code 0.
bool is_good(Status status);

struct CaseResult {
  Status status = Status::kInternalError;
  std::string detail;  // the worst element with both values, what is missing, or what went wrong
  double worst_error = 0;  // largest error over its bound: passes up to 1
  double nmse = 0;         // squared error over squared expected values, over all outputs
  uint32_t repeats = 0;    // runs compared bit by bit
  double seconds = 0;      // host time, compilation included
  /// Other orders of workgroups and subgroups that gave the same bits, the last of them perhaps
  /// others: "reverse", "random 1".
  std::vector<std::string> orders = {};
};

}  // namespace mulciber::conformance
