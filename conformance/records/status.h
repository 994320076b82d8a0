// The result of a case.
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
  kFlaky,           // other bits in another run or another order of workgroups and subgroups, or a
                    // crash that did not repeat
  kNotSupported,    // the device lacks a feature, which the detail names
  kQualityWarning,  // within its bounds, but worse than expected from the row
  kMistrusted,      // the inputs make the check meaningless
  kResourceError,   // out of memory
  kTimeout,
  kCrash,
  kDeviceLost,
  kInternalError,  // a fault of the suite itself
  kWaiver,         // a known failure
};
inline constexpr int kStatusCount = 12;

/// "Pass", "NotSupported", ...
const char* name_of(Status status);
/// Explains a status in a sentence.
const char* meaning_of(Status status);
/// The status of that name, or nothing.
std::optional<Status> status_from(std::string_view name);
/// Whether a run with such a case may end with exit code 0.
bool is_good(Status status);

struct CaseResult {
  Status status = Status::kInternalError;
  std::string detail;      // the worst element with both values, the missing feature, or the fault
  double worst_error = 0;  // largest error over its bound: passes up to 1
  double nmse = 0;         // squared error over squared expected values, over all outputs
  uint32_t repeats = 0;    // number of runs compared bit by bit
  double seconds = 0;      // elapsed time, including compilation
  /// Other orders of workgroups and subgroups that ran: all gave equal bits, except perhaps the
  /// last one. "reverse", "random 1".
  std::vector<std::string> orders = {};
};

}  // namespace mulciber::conformance
