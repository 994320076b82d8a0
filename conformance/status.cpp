#include "conformance/status.h"

namespace mulciber::conformance {
namespace {

constexpr const char* kNames[kStatusCount] = {
    "Pass",    "Fail",  "Flaky",      "NotSupported",  "QualityWarning", "Mistrusted", "ResourceError",
    "Timeout", "Crash", "DeviceLost", "InternalError", "Waiver"};

}  // namespace

const char* name_of(Status status) { return kNames[static_cast<int>(status)]; }

std::optional<Status> status_from(std::string_view name) {
  for (int i = 0; i < kStatusCount; ++i) {
    if (name == kNames[i]) return static_cast<Status>(i);
  }
  return std::nullopt;
}

bool is_good(Status status) {
  return status == Status::kPass || status == Status::kNotSupported || status == Status::kQualityWarning ||
         status == Status::kWaiver;
}

}  // namespace mulciber::conformance
