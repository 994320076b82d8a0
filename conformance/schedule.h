// What child processes are to run, and what their end says about a case. No processes here: this is
// the reasoning alone, so that a test can walk through it.
//
// A child announces each case before it starts it. When it dies, the announced case is suspect, but
// need not be guilty: an earlier one may have left the driver broken. So a suspect runs again in a
// child of its own. If that ends badly too, the verdict stands; if not, the case is Flaky, and the
// detail says in what company it failed. Where a child dies between cases there is no suspect, and
// what it had left is halved until there is one.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "conformance/records/status.h"

namespace mulciber::conformance {

/// Cases for one child, in order, by their index.
using Batch = std::vector<size_t>;

/// How a child ended, seen from the parent.
struct ChildEnd {
  enum Kind {
    kFinished,    // ended by itself, with success
    kDied,        // a signal, or another exit code
    kTimedOut,    // killed: its case took too long
    kDeviceLost,  // ended by itself, for the device was lost in the case it ran
  };
  Kind kind = kFinished;
  std::string words;                // "died of SIGSEGV (Segmentation fault)"
  std::optional<size_t> announced;  // the case that was started and not reported
  size_t reported = 0;              // cases of the batch that had ended before
};

struct Verdict {
  size_t index;
  CaseResult result;
};

class Schedule {
 public:
  /// cases: indices, in order. batch: the most of them for one child. children: how many there are
  /// at a time; towards the end batches shrink, so that no child is left with a long one.
  Schedule(std::vector<size_t> cases, size_t batch, size_t children);

  /// The batch of the next child, or nothing when none waits (children at work may still add some).
  std::optional<Batch> next();
  /// A case of `batch` ended with a result. Its verdict, or nothing when the case is to run again
  /// alone.
  std::optional<Verdict> reported(const Batch& batch, size_t index, CaseResult result);
  /// A child ended; `left`: what it had not reported, in order. What is decided; the rest is
  /// scheduled anew.
  std::optional<Verdict> ended(const Batch& batch, const Batch& left, const ChildEnd& end);
  /// A child could not begin: its batch is for another.
  void give_back(Batch batch) { first_.push_front(std::move(batch)); }

 private:
  std::deque<size_t> waiting_;
  std::deque<Batch> first_;                           // batches made of what dead children left
  std::unordered_map<size_t, std::string> suspects_;  // what happened in company
  size_t batch_, children_;
};

}  // namespace mulciber::conformance
