// Two runs side by side: which cases came out differently, for better or for worse.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "conformance/records/record.h"

namespace mulciber::conformance {

enum class Direction : uint8_t { kWorse, kBetter, kOther };

/// "worse", "better", "other"
const char* name_of(Direction direction);

struct Change {
  std::string name;
  std::optional<Status> before;  // nothing: the case is new
  Status now = Status::kPass;
  Direction direction = Direction::kOther;
  std::string detail;  // of the run that is worse
};

/// Whether `now` is worse than `before`, better, or another of the same kind: Pass, QualityWarning,
/// NotSupported, Waiver, Mistrusted stand in this order, and all others together last.
Direction compare_statuses(Status before, Status now);

/// Cases of `now` whose status differs from the one before, worse ones first. A case that `before`
/// lacks is worse when it is not good, else other. Cases that only `before` has are no change: a
/// run may be of a part.
std::vector<Change> changes(const std::vector<CaseRecord>& before,
                            const std::vector<CaseRecord>& now);

}  // namespace mulciber::conformance
