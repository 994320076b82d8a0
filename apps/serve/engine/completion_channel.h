// Passes events of completions from the engine's thread to a client's thread, and requests to end
// back.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "apps/serve/http/api_error.h"
#include "mulciber/text_generator.h"

namespace mulciber::apps::serve {

/// An event of one of a request's completions.
struct CompletionEvent {
  uint32_t choice = 0;
  std::string piece;  // text that has become certain; at the end, the rest of it
  std::optional<TokenProbability> token;  // the token, where probabilities were asked for
  std::vector<TokenProbability> likeliest;
  /// The completion begins again after a device loss: earlier events of it are void.
  bool again = false;
  // The last event of this choice has one of these:
  std::optional<GenerateEnd> end;
  std::optional<ApiError> error;
  // Set together with end:
  size_t prompt_tokens = 0, cached_tokens = 0, completion_tokens = 0;
  size_t draft_tokens = 0, accepted_tokens = 0;  // by speculative decoding

  bool last() const { return end || error; }
};

/// Thread-safe; the engine writes, one client's thread reads. Both keep the channel.
class CompletionChannel {
 public:
  void push(CompletionEvent event);
  /// The next event, or no value when none came within `time`.
  std::optional<CompletionEvent> pop(std::chrono::milliseconds time);

  /// Called by the client's thread when the completions are not needed any more. The engine checks
  /// this before every step.
  void cancel() { cancelled_ = true; }
  bool cancelled() const { return cancelled_; }
  /// Called by the client's thread when a completion needs no more tokens: it ends as at a stop
  /// text. A call before the completion begins again does not count.
  void end(uint32_t choice);
  bool ends(uint32_t choice) const;

 private:
  mutable std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<CompletionEvent> events_;
  std::set<uint32_t> ended_;
  std::atomic<bool> cancelled_{false};
};

/// Bounds how many completions are under way or wait: a server that takes more only makes all
/// clients wait longer.
class Admission {
 public:
  explicit Admission(size_t most) : most_(most) {}

  /// Admits `count` completions at once. Throws ApiError: 429 where so many are not free now, 503
  /// once closed, 400 where there will never be so many.
  void enter(size_t count);
  void leave(size_t count = 1);
  /// Admits no further completions; `reason` is the message of the error then.
  void close(const std::string& reason);
  /// Waits until all completions have left; false where some have not within `time`.
  bool wait_until_empty(std::chrono::milliseconds time);
  size_t inside() const;
  /// The reason of close(); no value while it is open.
  std::optional<std::string> closed() const;

 private:
  mutable std::mutex mutex_;
  std::condition_variable left_;
  const size_t most_;
  size_t inside_ = 0;
  std::optional<std::string> closed_;
};

}  // namespace mulciber::apps::serve
