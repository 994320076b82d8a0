// Bounds on the time of a client's connection, by a clock that advances one second per reading.
#include "apps/serve/http/connection.h"

#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "tests/catch.h"

using namespace mulciber::apps::serve;
using namespace std::chrono_literals;

namespace {

constexpr size_t kAnySize = 1 << 20;

/// The server's end of a connection, and a client that sends what it is told to.
struct Client {
  std::atomic<bool> stopping{false};
  int seconds = 0;  // seconds that have passed
  int socket = -1;
  Connection connection;

  Client() : Client(pair()) {}
  ~Client() { ::close(socket); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  void send(const std::string& text) const {
    REQUIRE(::send(socket, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()));
  }
  std::string read() {
    char to[64];
    const ssize_t count = connection.read(to, sizeof(to));
    return count < 0 ? "nothing" : std::string(to, static_cast<size_t>(count));
  }

 private:
  struct Ends {
    int server, client;
  };
  static Ends pair() {
    int ends[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    return {ends[0], ends[1]};
  }
  explicit Client(Ends ends)
      : socket(ends.client), connection(ends.server, 30s, stopping, [this] {
          return Connection::Clock::time_point(std::chrono::seconds(seconds++));
        }) {}
};

}  // namespace

TEST_CASE("a request that does not arrive in time is too slow, whatever came of it") {
  Client client;
  client.connection.expect(kAnySize, 600s);
  client.send("GE");
  CHECK(client.read() == "GE");
  CHECK(client.connection.trouble() == Connection::Trouble::kNone);
  CHECK(client.read() == "nothing");
  CHECK(client.connection.trouble() == Connection::Trouble::kTooSlow);
  CHECK(client.seconds >= 600);
  // A byte now and then does not extend the wait.
  client.send("T");
  CHECK(client.read() == "nothing");
  // The next request has its own time limit.
  Client other;
  for (int byte = 0; byte < 3; ++byte) {
    other.connection.expect(kAnySize, 600s);
    other.send("x");
    CHECK(other.read() == "x");
  }
}

TEST_CASE("a connection that asks for nothing is given up after a time") {
  Client client;
  CHECK_FALSE(client.connection.wait_for_request(500s));
  CHECK(client.seconds >= 500);
  client.send("GET /health HTTP/1.1");
  CHECK(client.connection.wait_for_request(500s));
  CHECK(client.connection.begins_with("GET /health "));
  CHECK_FALSE(client.connection.begins_with("HEAD"));
}

TEST_CASE("a server that stops waits for half a request for a moment") {
  Client client;
  client.connection.expect(kAnySize, 100'000s);
  client.stopping = true;
  CHECK(client.read() == "nothing");
  CHECK(client.connection.trouble() == Connection::Trouble::kTooSlow);
  CHECK(client.seconds < 100);
  CHECK_FALSE(client.connection.wait_for_request(100'000s));
}

TEST_CASE("a client that takes nothing is gone after a time") {
  Client client;
  const std::string much(64u << 20, 'x');
  CHECK(client.connection.write(much.data(), 10) == 10);
  CHECK(client.connection.write(much.data(), much.size()) == -1);
  CHECK(client.seconds >= 30);
}

TEST_CASE("more than the bytes that a request may have is too much") {
  Client client;
  client.connection.expect(3, 600s);
  client.send("GET /");
  CHECK(client.read() == "GET");
  CHECK(client.read() == "nothing");
  CHECK(client.connection.trouble() == Connection::Trouble::kTooLarge);
}
