#include "apps/serve/http/connection.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace mulciber::apps::serve {
namespace {

constexpr std::chrono::milliseconds kLook(100);  // interval of checks whether the server stops
// For the rest of a request or a response, once the server stops.
constexpr std::chrono::seconds kLastMoment(2);

using Name = int (*)(int, sockaddr*, socklen_t*);

void address_of(int socket, Name name, std::string& ip, int& port) {
  sockaddr_storage address = {};
  socklen_t length = sizeof(address);
  ip.clear(), port = -1;
  if (name(socket, reinterpret_cast<sockaddr*>(&address), &length) != 0) return;
  char text[INET6_ADDRSTRLEN] = {};
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    inet_ntop(AF_INET, &v4.sin_addr, text, sizeof(text));
    port = ntohs(v4.sin_port);
  } else if (address.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
    inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof(text));
    port = ntohs(v6.sin6_port);
  }
  ip = text;
}

}  // namespace

Connection::Connection(int socket, std::chrono::seconds write_time,
                       const std::atomic<bool>& stopping, Now now)
    : socket_(socket), write_time_(write_time), stopping_(stopping), now_(std::move(now)) {
  const int on = 1;  // pieces of an answer are small, and must leave at once
  setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

Connection::~Connection() { ::close(socket_); }

bool Connection::ready(short events, Clock::time_point until) const {
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - now_()).count();
    pollfd wanted = {socket_, events, 0};
    const int found = ::poll(&wanted, 1, static_cast<int>(std::clamp<long>(left, 0, 60'000)));
    if (found > 0) return true;
    if (found < 0 && errno == EINTR) continue;
    if (found < 0 || now_() >= until) return false;
  }
}

/// Waits until the socket is ready; `until` becomes earlier where the server stops meanwhile.
bool Connection::becomes_ready(short events, Clock::time_point& until) const {
  do {
    if (stopping_) until = std::min(until, now_() + kLastMoment);
    if (ready(events, std::min(until, now_() + kLook))) return true;
  } while (now_() < until);
  return false;
}

bool Connection::fill(Clock::time_point& until) {
  if (!becomes_ready(POLLIN, until)) {
    trouble_ = Trouble::kTooSlow;
    return false;
  }
  buffer_.resize(16384);
  at_ = 0;
  ssize_t got = 0;
  do {
    got = ::recv(socket_, buffer_.data(), buffer_.size(), 0);
  } while (got < 0 && errno == EINTR);
  buffer_.resize(static_cast<size_t>(std::max<ssize_t>(got, 0)));
  if (got <= 0) trouble_ = Trouble::kGone;
  return got > 0;
}

bool Connection::wait_for_request(std::chrono::milliseconds time) {
  Clock::time_point end = now_() + time;
  while (at_ == buffer_.size()) {
    if (stopping_ || now_() >= end) return false;
    if (!ready(POLLIN, std::min(end, now_() + kLook))) continue;
    if (!fill(end)) return false;
  }
  return true;
}

void Connection::expect(size_t bytes, std::chrono::seconds time) {
  budget_ = bytes;
  deadline_ = now_() + time;
  wrote_ = false;
}

ssize_t Connection::read(char* to, size_t size) {
  if (budget_ == 0) trouble_ = Trouble::kTooLarge;
  if (trouble_ != Trouble::kNone) return -1;
  if (at_ == buffer_.size() && !fill(deadline_)) return -1;
  const size_t count = std::min({size, buffer_.size() - at_, budget_});
  std::copy_n(buffer_.data() + at_, count, to);
  at_ += count;
  budget_ -= count;
  return static_cast<ssize_t>(count);
}

ssize_t Connection::write(const char* from, size_t size) {
  Clock::time_point end = now_() + write_time_;
  size_t done = 0;
  wrote_ = true;
  while (done < size) {
    if (!becomes_ready(POLLOUT, end)) return -1;
    const ssize_t sent = ::send(socket_, from + done, size - done, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) done += static_cast<size_t>(sent);
    if (sent < 0 && errno != EINTR && errno != EAGAIN) return -1;
  }
  return static_cast<ssize_t>(size);
}

bool Connection::gone() const {
  pollfd wanted = {socket_, POLLRDHUP, 0};
  return ::poll(&wanted, 1, 0) > 0 && (wanted.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

void Connection::finish() {
  constexpr size_t kMost = size_t{4} << 20;
  ::shutdown(socket_, SHUT_WR);
  Clock::time_point end = now_() + std::chrono::seconds(1);
  for (size_t read = 0; read < kMost && fill(end); read += buffer_.size()) {
  }
}

bool Connection::readable() { return at_ < buffer_.size() || becomes_ready(POLLIN, deadline_); }

bool Connection::writable() const {
  Clock::time_point end = now_() + write_time_;
  return !gone() && becomes_ready(POLLOUT, end);
}

void Connection::remote(std::string& ip, int& port) const {
  address_of(socket_, ::getpeername, ip, port);
}

void Connection::local(std::string& ip, int& port) const {
  address_of(socket_, ::getsockname, ip, port);
}

}  // namespace mulciber::apps::serve
