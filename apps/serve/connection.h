// A client's connection, with bounds on time and bytes: one that sends slowly, or without end,
// holds nobody else up.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string>

namespace mulciber::apps::serve {

class Connection {
 public:
  using Clock = std::chrono::steady_clock;
  enum class Trouble { kNone, kTooSlow, kTooLarge, kGone };

  /// Owns the socket. write_time: a client that takes nothing for so long is gone.
  Connection(int socket, std::chrono::seconds write_time);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Waits for the first byte of the next request. False after so much time, when the client has
  /// closed, or once `stopping` says so.
  template <class Stopping>
  bool wait_for_request(std::chrono::seconds time, const Stopping& stopping);
  /// What is read from now on may be so large, and must have come by then; otherwise reading ends,
  /// and trouble() says why.
  void expect(size_t bytes, std::chrono::seconds time);
  Trouble trouble() const { return trouble_; }
  /// The client has closed its end, or the connection broke.
  bool gone() const;
  bool wrote() const { return wrote_; }
  /// Ends the sending half, and reads what is still under way for a moment: closing at once would
  /// reset the connection, and the client might never read the answer.
  void finish();

  /// A byte is there, or comes before the request's time is over.
  bool readable() const;
  bool writable() const;
  /// As recv() and send(), but the latter sends everything or fails.
  ssize_t read(char* to, size_t size);
  ssize_t write(const char* from, size_t size);
  void remote(std::string& ip, int& port) const;
  void local(std::string& ip, int& port) const;
  int socket() const { return socket_; }

 private:
  bool ready(short events, Clock::time_point until) const;
  bool fill(Clock::time_point until);

  int socket_;
  std::chrono::seconds write_time_;
  Clock::time_point deadline_ = Clock::now();
  std::string buffer_;
  size_t at_ = 0, budget_ = 0;
  Trouble trouble_ = Trouble::kNone;
  bool wrote_ = false;
};

template <class Stopping>
bool Connection::wait_for_request(std::chrono::seconds time, const Stopping& stopping) {
  constexpr std::chrono::milliseconds kLook(100);  // at `stopping`
  const Clock::time_point end = Clock::now() + time;
  while (at_ == buffer_.size()) {
    if (stopping() || Clock::now() >= end) return false;
    if (!ready(POLLIN, std::min(end, Clock::now() + kLook))) continue;
    if (!fill(end)) return false;
  }
  return true;
}

}  // namespace mulciber::apps::serve
