// What the threads of `mulciber serve` hand to each other, which requests are admitted, and what is
// counted.
#include <thread>

#include "apps/serve/engine/completion_channel.h"
#include "apps/serve/engine/engine.h"
#include "apps/serve/engine/metrics.h"
#include "apps/serve/http/access.h"
#include "apps/serve/http/http_server.h"
#include "mulciber/error.h"
#include "tests/catch.h"
#include "tests/device.h"
#include "tests/support.h"

using namespace mulciber;
using namespace mulciber::apps::serve;
using namespace std::chrono_literals;

namespace {

constexpr auto kGiveUp = 10min;  // only a call that hangs waits so long

/// "STATUS CODE" of what a call throws, or "".
template <class Call>
std::string refusal(const Call& call) {
  try {
    call();
  } catch (const ApiError& error) {
    return std::to_string(error.status()) + " " + error.code();
  }
  return "";
}

}  // namespace

TEST_CASE("events of a channel arrive in their order, on another thread") {
  constexpr int kEvents = 1000;
  CompletionChannel channel;
  CHECK_FALSE(channel.pop(1ms));
  std::thread writer([&] {
    for (int i = 0; i < kEvents; ++i) {
      CompletionEvent event;
      event.completion_tokens = static_cast<size_t>(i);
      if (i + 1 == kEvents) event.end = GenerateEnd::kEndOfText;
      channel.push(std::move(event));
    }
  });
  size_t next = 0;
  bool in_order = true, last = false;
  while (!last) {
    const auto event = channel.pop(kGiveUp);
    REQUIRE(event);
    in_order = in_order && event->completion_tokens == next++;
    last = event->last();
  }
  writer.join();
  CHECK(in_order);
  CHECK(next == kEvents);
  CHECK_FALSE(channel.cancelled());
  channel.cancel();
  CHECK(channel.cancelled());
}

TEST_CASE("an answer of which there is enough ends, and one that begins anew does not") {
  CompletionChannel channel;
  const auto again = [&] {
    CompletionEvent event;
    event.choice = 1;
    event.again = true;
    channel.push(std::move(event));
  };
  channel.end(1);
  CHECK(channel.ends(1));
  CHECK_FALSE(channel.ends(0));
  again();
  CHECK_FALSE(channel.ends(1));
  // The client still holds the answer before the repetition, so this end does not count.
  channel.end(1);
  CHECK_FALSE(channel.ends(1));
  REQUIRE(channel.pop(1ms));
  channel.end(1);
  CHECK(channel.ends(1));
}

TEST_CASE("a full queue refuses, and lets in who comes later") {
  Admission admission(3);
  admission.enter(2);
  CHECK(refusal([&] { admission.enter(2); }) == "429 queue_full");
  CHECK(admission.inside() == 2);
  admission.enter(1);
  CHECK(refusal([&] { admission.enter(1); }) == "429 queue_full");
  // The request can never be admitted: waiting would not help.
  CHECK(refusal([&] { admission.enter(4); }) == "400 ");
  admission.leave(2);
  admission.enter(2);
  CHECK_FALSE(admission.wait_until_empty(1ms));
  admission.close("stopping");
  CHECK(refusal([&] { admission.enter(1); }) == "503 unavailable");
  CHECK(admission.closed() == "stopping");
  std::thread leaver([&] { admission.leave(3); });
  CHECK(admission.wait_until_empty(kGiveUp));
  leaver.join();
}

TEST_CASE("work runs on the engine's thread, and what it throws comes out") {
  Metrics metrics;
  Engine engine({}, 1, 1, metrics);
  const auto nobody_gone = [] { return false; };
  const auto fail_with = [&](DeviceError::Kind kind) {
    engine.call([kind](const std::atomic<bool>&) { throw DeviceError(kind, "device", "played"); },
                nobody_gone);
  };
  std::thread::id worker;
  engine.call([&](const std::atomic<bool>&) { worker = std::this_thread::get_id(); }, nobody_gone);
  CHECK(worker != std::this_thread::get_id());
  CHECK_THROWS_AS(
      engine.call([](const std::atomic<bool>&) { throw ModelError("a", "b", "c"); }, nobody_gone),
      ModelError);
  CHECK(engine.admission().inside() == 0);

  // A client that goes away ends its work; nothing is reported.
  std::atomic<bool> begun{false};
  const auto until_cancelled = [&](const std::atomic<bool>& cancel) {
    begun = true;
    while (!cancel) std::this_thread::sleep_for(1ms);
  };
  CHECK(refusal([&] { engine.call(until_cancelled, [&] { return begun.load(); }); }) ==
        "499 client_gone");
  {
    // A server that stops ends the work as well.
    Engine stopping({}, 1, 1, metrics);
    begun = false;
    std::thread stopper([&] {
      while (!begun) std::this_thread::sleep_for(1ms);
      stopping.cancel_all();
    });
    CHECK(refusal([&] { stopping.call(until_cancelled, nobody_gone); }) == "503 unavailable");
    stopper.join();
  }

  // Out of memory, the engine goes on; a lost device is lost for all requests, and each gets the
  // reason.
  CHECK_THROWS_AS(fail_with(DeviceError::Kind::kOutOfMemory), DeviceError);
  CHECK_FALSE(engine.trouble());
  CHECK_THROWS_AS(fail_with(DeviceError::Kind::kLost), DeviceError);
  REQUIRE(engine.trouble());
  CHECK(engine.failed());
  CHECK(engine.trouble()->find("played") != std::string::npos);
  CHECK(refusal([&] { engine.call([](const std::atomic<bool>&) {}, nobody_gone); }) ==
        "503 unavailable");
  CHECK(refusal([&] { engine.submit(std::vector<TextJob>(1)); }) == "503 unavailable");
}

TEST_CASE("an answer goes on between the parts of other work") {
  Metrics metrics;
  ServedModels models;
  models.push_back(open_served((tests::data_dir() / "gemma3").string()));
  ServedModel& model = *models.front();
  load_served(model, tests::shared_handle(), {.sequences = 2});
  Engine engine(std::move(models), 2, 2, metrics);
  bool begun = false, ended = false;
  engine.call(
      [&](const std::atomic<bool>&) {
        TextJob job{.model = &model, .request = {}};
        job.request.prompt = "The red hammer";
        job.request.max_new_tokens = 6;
        job.request.ignore_end = true;
        const auto channel = engine.submit({job});
        // The engine takes in the prompt, then makes a token in each step that follows.
        for (int turn = 0; turn < 4; ++turn) engine.go_on();
        while (const auto event = channel->pop(0ms)) begun = true, ended = event->last();
        CHECK(begun);
        CHECK_FALSE(ended);
        for (int turn = 0; turn < 4; ++turn) engine.go_on();
        while (const auto event = channel->pop(0ms)) ended = event->last();
      },
      [] { return false; });
  CHECK(ended);
}

TEST_CASE("a lost device is opened again, and what it cut is done again") {
  Metrics metrics;
  std::atomic<int> openings{0};
  int refused = 2;
  EngineDevice device;
  device.attempts = 4;
  device.pause = 1ms;
  device.reopen = [&](const ServedModels&) {
    ++openings;
    if (refused-- > 0) throw DeviceError(DeviceError::Kind::kUnavailable, "device", "played");
  };
  Engine engine({}, 4, 4, metrics, device);
  const auto nobody_gone = [] { return false; };
  int times = 0;
  const auto lost_until = [&](int good) {
    times = 0;
    engine.call(
        [&](const std::atomic<bool>&) {
          if (++times < good) throw DeviceError(DeviceError::Kind::kLost, "device", "played");
        },
        nobody_gone);
  };
  lost_until(2);
  CHECK(times == 2);
  CHECK(openings == 3);
  CHECK_FALSE(engine.trouble());
  lost_until(3);
  CHECK(times == 3);
  // Work that loses the device each time may be the cause of the loss: it fails, and other requests
  // go on.
  CHECK_THROWS_AS(lost_until(10), DeviceError);
  CHECK(times == 3);
  lost_until(1);
  CHECK_FALSE(engine.failed());
  CHECK(engine.admission().inside() == 0);
  CHECK(metrics.text(0, false).find("mulciber_device_losses_total 6\n") != std::string::npos);
  CHECK(metrics.text(0, false).find("mulciber_restarts_total 5\n") != std::string::npos);

  // More attempts in a row fail than are allowed: every request gets the reason.
  refused = 100;
  CHECK(refusal([&] { lost_until(2); }) == "503 device_failed");
  CHECK(engine.failed());
  CHECK(refusal([&] { lost_until(1); }) == "503 unavailable");
}

TEST_CASE("keys and origins say who may ask") {
  HttpSettings settings;
  const AccessRules open(settings);
  CHECK(refusal([&] { open.check_key(""); }) == "");
  CHECK(open.check_origin("", "localhost:8080").empty());
  CHECK(open.check_origin("http://localhost:8080", "localhost:8080").empty());
  CHECK(open.check_origin("", "[::1]:8080").empty());
  CHECK(refusal([&] { open.check_origin("https://example.org", "localhost:8080"); }) ==
        "403 unknown_origin");
  // A page's own host name may point at this machine (DNS rebinding).
  for (const char* name : {"example.org", "127.example.org", "127.0.0.1.example.org"}) {
    const std::string host = std::string(name) + ":8080";
    CHECK(refusal([&] { open.check_origin("http://" + host, host); }) == "403 unknown_host");
  }
  CHECK(open.check_origin("http://127.0.0.1:8080", "127.0.0.1:8080").empty());

  settings.keys = {"secret", "other"};
  settings.origins = {"https://example.org"};
  const AccessRules locked(settings);
  CHECK(refusal([&] { locked.check_key("Bearer secret"); }) == "");
  CHECK(refusal([&] { locked.check_key("Bearer other"); }) == "");
  for (const char* wrong :
       {"", "secret", "Bearer ", "Bearer secre", "Bearer secrets", "Basic secret"})
    CHECK(refusal([&] { locked.check_key(wrong); }) == "401 invalid_api_key");
  CHECK(locked.check_origin("https://example.org", "models.example.org") == "https://example.org");
  CHECK(refusal([&] { locked.check_origin("https://example.com", "x"); }) == "403 unknown_origin");

  settings.origins = {"*"};
  CHECK(AccessRules(settings).check_origin("https://example.com", "x") == "*");
}

TEST_CASE("metrics are text that Prometheus reads") {
  Metrics metrics;
  metrics.count_request("/health", 200, 0.0005);
  metrics.count_request("/health", 200, 100);
  metrics.count_first_token(0.003);
  metrics.set_batch({"a \"name\"", 2, 1, {.requests = 5, .reused_tokens = 7}});
  const std::string text = metrics.text(3, false);
  for (const char* line :
       {"mulciber_requests_total{endpoint=\"/health\",status=\"200\"} 2\n",
        "mulciber_request_seconds_bucket{le=\"0.001\"} 1\n",
        "mulciber_request_seconds_bucket{le=\"+Inf\"} 2\n", "mulciber_request_seconds_count 2\n",
        "mulciber_first_token_seconds_bucket{le=\"0.002\"} 0\n",
        "mulciber_first_token_seconds_bucket{le=\"0.004\"} 1\n",
        "mulciber_batch_running{model=\"a \\\"name\\\"\"} 2\n",
        "mulciber_reused_tokens_total{model=\"a \\\"name\\\"\"} 7\n", "mulciber_completions 3\n",
        "mulciber_answers 3\n",  // deprecated name
        "mulciber_device_lost 0\n"})
    CHECK(text.find(line) != std::string::npos);
  CHECK(metrics.text(0, true).find("mulciber_device_lost 1\n") != std::string::npos);
}
