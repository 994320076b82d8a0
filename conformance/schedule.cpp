#include "conformance/schedule.h"

#include <fmt/format.h>

#include <algorithm>

namespace mulciber::conformance {

Schedule::Schedule(std::vector<size_t> cases, size_t batch, size_t children)
    : waiting_(cases.begin(), cases.end()),
      batch_(std::max<size_t>(1, batch)),
      children_(std::max<size_t>(1, children)) {}

std::optional<Batch> Schedule::next() {
  if (!first_.empty()) {
    Batch batch = std::move(first_.front());
    first_.pop_front();
    return batch;
  }
  if (waiting_.empty()) return std::nullopt;
  // Each child has to open a device: batches do not shrink below eight.
  const size_t share = std::max<size_t>(8, waiting_.size() / (2 * children_));
  const size_t count = std::min({batch_, share, waiting_.size()});
  Batch batch(waiting_.begin(), waiting_.begin() + static_cast<ptrdiff_t>(count));
  waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<ptrdiff_t>(count));
  return batch;
}

std::optional<Verdict> Schedule::reported(const Batch& batch, size_t index, CaseResult result) {
  if (result.status == Status::kDeviceLost && batch.size() > 1) {
    suspects_[index] = fmt::format("{} (in a process that ran other cases)", result.detail);
    first_.push_front({index});
    return std::nullopt;
  }
  const auto suspect = suspects_.find(index);
  if (suspect != suspects_.end() && is_good(result.status)) {
    result.detail = fmt::format("{}; alone in a new process it gave {}", suspect->second,
                                name_of(result.status));
    result.status = Status::kFlaky;
  }
  return Verdict{index, std::move(result)};
}

std::optional<Verdict> Schedule::ended(const Batch& batch, const Batch& left, const ChildEnd& end) {
  if (left.empty()) return std::nullopt;
  Batch rest = left;
  std::optional<Verdict> verdict;
  std::optional<Batch> alone;
  if (end.announced) std::erase(rest, *end.announced);
  if (end.announced && end.kind == ChildEnd::kTimedOut) {
    verdict = {*end.announced, {Status::kTimeout, end.words}};
  } else if (end.announced && batch.size() == 1) {
    verdict = {*end.announced, {Status::kCrash, end.words}};
  } else if (end.announced) {
    suspects_[*end.announced] =
        fmt::format("the process {} while this case ran, after {} others", end.words, end.reported);
    alone = Batch{*end.announced};
  } else if (end.kind != ChildEnd::kDeviceLost && batch.size() == 1) {
    verdict = {left[0], {Status::kCrash, end.words + " before the case began"}};
    rest.clear();
  } else if (end.kind != ChildEnd::kDeviceLost && left.size() > 1) {
    const auto middle = rest.begin() + static_cast<ptrdiff_t>(rest.size() / 2);
    first_.emplace_front(middle, rest.end());
    rest.erase(middle, rest.end());
  }
  if (!rest.empty()) first_.push_front(std::move(rest));
  if (alone) first_.push_front(std::move(*alone));
  return verdict;
}

}  // namespace mulciber::conformance
