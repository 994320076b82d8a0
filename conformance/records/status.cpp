#include "conformance/records/status.h"

namespace mulciber::conformance {
namespace {

constexpr const char* kNames[kStatusCount] = {
    "Pass",          "Fail",    "Flaky", "NotSupported", "QualityWarning", "Mistrusted",
    "ResourceError", "Timeout", "Crash", "DeviceLost",   "InternalError",  "Waiver"};

}  // namespace

const char* meaning_of(Status status) {
  switch (status) {
    case Status::kPass:
      return "Every result is within its bound, and every run gave the same bits.";
    case Status::kFail:
      return "A result is further from the exact one than its operations permit, or memory outside "
             "the "
             "results was written. The driver, or a kernel, is wrong.";
    case Status::kFlaky:
      return "The same inputs gave other bits in another run or with workgroups and subgroups in "
             "another order, or a crash that did not come again. Typical of races, missing "
             "barriers "
             "and uninitialized memory.";
    case Status::kNotSupported:
      return "The device lacks a feature or a limit that this kernel needs. No fault: another "
             "kernel serves such devices.";
    case Status::kQualityWarning:
      return "Within what Vulkan permits, but less precise than this kernel usually is.";
    case Status::kMistrusted:
      return "The inputs or expected results of the case cannot tell right from wrong. A fault of "
             "the suite.";
    case Status::kResourceError: return "The device or the CPU ran out of memory.";
    case Status::kTimeout: return "The case did not end in time, and its process was stopped.";
    case Status::kCrash: return "The process died, in this case alone as well.";
    case Status::kDeviceLost: return "The driver lost the device (VK_ERROR_DEVICE_LOST).";
    case Status::kInternalError: return "The suite itself failed.";
    case Status::kWaiver: return "Fails, and is known to: the reason stands with the case.";
  }
  return "?";
}

const char* name_of(Status status) { return kNames[static_cast<int>(status)]; }

std::optional<Status> status_from(std::string_view name) {
  for (int i = 0; i < kStatusCount; ++i) {
    if (name == kNames[i]) return static_cast<Status>(i);
  }
  return std::nullopt;
}

bool is_good(Status status) {
  return status == Status::kPass || status == Status::kNotSupported ||
         status == Status::kQualityWarning || status == Status::kWaiver;
}

}  // namespace mulciber::conformance
