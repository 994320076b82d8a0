#include "conformance/records/baseline.h"

#include <algorithm>
#include <unordered_map>

namespace mulciber::conformance {
namespace {

int badness(Status status) {
  switch (status) {
    case Status::kPass: return 0;
    case Status::kQualityWarning: return 1;
    case Status::kNotSupported: return 2;
    case Status::kWaiver: return 3;
    case Status::kMistrusted: return 4;
    default: return 5;
  }
}

}  // namespace

const char* name_of(Direction direction) {
  return direction == Direction::kWorse    ? "worse"
         : direction == Direction::kBetter ? "better"
                                           : "other";
}

Direction compare_statuses(Status before, Status now) {
  const int difference = badness(now) - badness(before);
  return difference > 0   ? Direction::kWorse
         : difference < 0 ? Direction::kBetter
                          : Direction::kOther;
}

std::vector<Change> changes(const std::vector<CaseRecord>& before,
                            const std::vector<CaseRecord>& now) {
  std::unordered_map<std::string, const CaseRecord*> known;
  for (const CaseRecord& record : before) known.emplace(record.name, &record);
  std::vector<Change> list;
  for (const CaseRecord& record : now) {
    const Status status = record.result.status;
    const auto found = known.find(record.name);
    if (found == known.end()) {
      const Direction direction = is_good(status) ? Direction::kOther : Direction::kWorse;
      list.push_back({record.name, std::nullopt, status, direction, record.result.detail});
      continue;
    }
    const CaseResult& old = found->second->result;
    if (old.status == status) continue;
    const Direction direction = compare_statuses(old.status, status);
    list.push_back({record.name, old.status, status, direction,
                    direction == Direction::kBetter ? old.detail : record.result.detail});
  }
  std::stable_sort(list.begin(), list.end(),
                   [](const Change& a, const Change& b) { return a.direction < b.direction; });
  return list;
}

}  // namespace mulciber::conformance
