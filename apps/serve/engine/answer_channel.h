// What the engine's thread tells the thread of a client about its answers, and the other way round.
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

/// Something new about one of a request's answers.
struct AnswerEvent {
  uint32_t choice = 0;
  std::string piece;                      // text that is certain now; at the end, the rest of it
  std::optional<TokenProbability> token;  // the token behind it, where probabilities were asked for
  std::vector<TokenProbability> likeliest;
  /// The answer begins anew, since the device was lost: what was told of it is void.
  bool again = false;
  // Last for this choice is one of:
  std::optional<GenerateEnd> end;
  std::optional<ApiError> error;
  // With end:
  size_t prompt_tokens = 0, cached_tokens = 0, answer_tokens = 0;
  size_t proposed_tokens = 0, accepted_tokens = 0;  // by speculative decoding

  bool last() const { return end || error; }
};

/// Thread-safe; the engine writes, one client's thread reads. Both keep it.
class AnswerChannel {
 public:
  void push(AnswerEvent event);
  /// The next event, or nothing when none came in so much time.
  std::optional<AnswerEvent> pop(std::chrono::milliseconds time);

  /// By the client's thread: nobody wants the answers any more. The engine looks before every step.
  void cancel() { cancelled_ = true; }
  bool cancelled() const { return cancelled_; }
  /// By the client's thread: of this answer there is enough, and it ends as at a stop text. One
  /// that begins anew has not.
  void end(uint32_t choice);
  bool ends(uint32_t choice) const;

 private:
  mutable std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<AnswerEvent> events_;
  std::set<uint32_t> ended_;
  std::atomic<bool> cancelled_{false};
};

/// Bounds how many answers are under way or wait: a server that takes more only makes everybody
/// wait longer.
class Admission {
 public:
  explicit Admission(size_t most) : most_(most) {}

  /// Takes `count` places at once. Throws ApiError: 429 where so many are not free now, 503 once
  /// closed, 400 where there will never be so many.
  void enter(size_t count);
  void leave(size_t count = 1);
  /// Nobody enters from now on; `reason` is what those who try are told.
  void close(const std::string& reason);
  /// Waits until all have left; false where they have not in so much time.
  bool wait_until_empty(std::chrono::milliseconds time);
  size_t inside() const;
  /// Nothing while it is open.
  std::optional<std::string> closed() const;

 private:
  mutable std::mutex mutex_;
  std::condition_variable left_;
  const size_t most_;
  size_t inside_ = 0;
  std::optional<std::string> closed_;
};

}  // namespace mulciber::apps::serve
