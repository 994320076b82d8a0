// A client's connection, with bounds on time and bytes: one that sends slowly, or without end,
// holds nobody else up.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace mulciber::apps::serve {

class Connection {
 public:
  using Clock = std::chrono::steady_clock;
  using Now = std::function<Clock::time_point()>;
  enum class Trouble { kNone, kTooSlow, kTooLarge, kGone };

  /// Owns the socket. write_time: a client that takes nothing for so long is gone. stopping: once
  /// true, what is still to be read and written has a moment. now: the clock of all bounds.
  Connection(int socket, std::chrono::seconds write_time, const std::atomic<bool>& stopping,
             Now now = Clock::now);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Waits for the first byte of the next request. False after so much time, when the client has
  /// closed, or where the server stops.
  bool wait_for_request(std::chrono::milliseconds time);
  /// Whether what has come of the next request begins so.
  bool begins_with(std::string_view text) const {
    return std::string_view(buffer_).substr(at_).starts_with(text);
  }
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
  bool readable();
  bool writable() const;
  /// As recv() and send(), but the latter sends everything or fails.
  ssize_t read(char* to, size_t size);
  ssize_t write(const char* from, size_t size);
  void remote(std::string& ip, int& port) const;
  void local(std::string& ip, int& port) const;
  int socket() const { return socket_; }

 private:
  bool ready(short events, Clock::time_point until) const;
  bool becomes_ready(short events, Clock::time_point& until) const;
  bool fill(Clock::time_point& until);

  int socket_;
  std::chrono::seconds write_time_;
  const std::atomic<bool>& stopping_;
  Now now_;
  Clock::time_point deadline_ = now_();
  std::string buffer_;
  size_t at_ = 0, budget_ = 0;
  Trouble trouble_ = Trouble::kNone;
  bool wrote_ = false;
};

}  // namespace mulciber::apps::serve
