// Compares two runs: the cases whose results differ, for better or worse.
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
  std::string detail;  // from the run that is worse
};

/// Whether `now` is worse than `before`, better, or different on the same level. The levels are, in
/// this order, Pass, QualityWarning, NotSupported, Waiver, Mistrusted, and last all others
/// together.
Direction compare_statuses(Status before, Status now);

/// Cases of `now` with another status than before, worse ones first. A case that `before` lacks is
/// worse when it is not good, else other. Cases that only `before` has are not changes, because a
/// run may be partial.
std::vector<Change> changes(const std::vector<CaseRecord>& before,
                            const std::vector<CaseRecord>& now);

}  // namespace mulciber::conformance
