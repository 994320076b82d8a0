// A client's connection, with bounds on time and bytes: a client that sends slowly, or without end,
// does not delay others.
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
  /// true, only a short time is left for reads and writes. now: the clock of all bounds.
  Connection(int socket, std::chrono::seconds write_time, const std::atomic<bool>& stopping,
             Now now = Clock::now);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Waits for the first byte of the next request. Returns false after so much time, when the
  /// client has closed, or when the server stops.
  bool wait_for_request(std::chrono::milliseconds time);
  /// Whether the received part of the next request begins with the text.
  bool begins_with(std::string_view text) const {
    return std::string_view(buffer_).substr(at_).starts_with(text);
  }
  /// Bounds what is read from now on, in bytes and in time; beyond these bounds reading ends, and
  /// trouble() gives the reason.
  void expect(size_t bytes, std::chrono::seconds time);
  Trouble trouble() const { return trouble_; }
  /// Whether the client has closed its end, or the connection is broken.
  bool gone() const;
  bool wrote() const { return wrote_; }
  /// Ends the sending half, and reads what is still under way for a moment: closing at once would
  /// reset the connection, and the client might never read the response.
  void finish();

  /// Waits until a byte can be read; false once the request's time is over.
  bool readable();
  bool writable() const;
  /// Read and write like recv() and send(), but write() sends everything or fails.
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
