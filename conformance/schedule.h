// The schedule of child processes, and the verdict on cases from the way that children end. It
// starts no processes itself, so that a test can step through it.
//
// A child announces each case before it starts it. When the child dies, the announced case is
// suspect, but an earlier one may have left the driver broken. So a suspect runs again in a child
// of its own. If that ends badly too, the verdict stands; otherwise the case is Flaky, and the
// detail names the cases that ran with it. Where a child dies between cases there is no suspect,
// and its remaining cases are halved until there is one.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "conformance/records/status.h"

namespace mulciber::conformance {

/// Cases for one child, in order, by index.
using Batch = std::vector<size_t>;

/// The end of a child, as the parent sees it.
struct ChildEnd {
  enum Kind {
    kFinished,    // exited with success
    kDied,        // died of a signal, or had another exit code
    kTimedOut,    // killed: its case took too long
    kDeviceLost,  // exited because the device was lost in its case
  };
  Kind kind = kFinished;
  std::string words;                // "died of SIGSEGV (Segmentation fault)"
  std::optional<size_t> announced;  // the case that was started and not reported
  size_t reported = 0;              // cases of the batch that ended before
};

struct Verdict {
  size_t index;
  CaseResult result;
};

class Schedule {
 public:
  /// cases: indices, in order. batch: most cases for one child. children: number of children at a
  /// time; towards the end batches shrink, so that no child is left with a long one.
  Schedule(std::vector<size_t> cases, size_t batch, size_t children);

  /// The batch of the next child, or nothing when none waits (running children may still add some).
  std::optional<Batch> next();
  /// Notes that a case of `batch` ended with a result. Returns its verdict, or nothing when the
  /// case runs again alone.
  std::optional<Verdict> reported(const Batch& batch, size_t index, CaseResult result);
  /// Notes that a child ended; `left`: its unreported cases, in order. Returns a verdict that is
  /// final; the other cases are scheduled again.
  std::optional<Verdict> ended(const Batch& batch, const Batch& left, const ChildEnd& end);
  /// Returns the batch of a child that could not start.
  void give_back(Batch batch) { first_.push_front(std::move(batch)); }

 private:
  std::deque<size_t> waiting_;
  std::deque<Batch> first_;                           // batches of cases that dead children left
  std::unordered_map<size_t, std::string> suspects_;  // results from runs with other cases
  size_t batch_, children_;
};

}  // namespace mulciber::conformance
