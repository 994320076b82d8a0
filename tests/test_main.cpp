// Runs the test cases and ends with one line, "N passed, N failed, N skipped", and the reason of
// every skip. MULCIBER_TEST_SUMMARY names a file that gets the three numbers appended as a line,
// for scripts that add up several runs. With MULCIBER_VALIDATE set, an error from the validation
// layer fails the test case that caused it, except one tagged [validation-errors].
#define CATCH_CONFIG_RUNNER
#include "tests/catch.h"

#if __has_include(<catch2/catch_session.hpp>)
#include <catch2/catch_session.hpp>
#include <catch2/catch_test_case_info.hpp>
#include <catch2/reporters/catch_reporter_event_listener.hpp>
#include <catch2/reporters/catch_reporter_registrars.hpp>
using ListenerBase = Catch::EventListenerBase;
#else
using ListenerBase = Catch::TestEventListenerBase;
#endif

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <memory>
#include <utility>
#include <vector>

#include "tests/validation_watch.h"

namespace {

std::unique_ptr<mulciber::tests::ValidationWatch> validation;

struct Summary {
  int passed = 0;
  int failed = 0;
  std::string current_skip;
  std::vector<std::pair<std::string, std::string>> skipped;  // test case, reason
};

Summary& summary() {
  static Summary instance;
  return instance;
}

// TestCaseStats holds its test case by value in Catch2 version 2 and by pointer in version 3.
[[maybe_unused]] const auto& info_of(const Catch::TestCaseInfo& info) { return info; }
[[maybe_unused]] const auto& info_of(const Catch::TestCaseInfo* info) { return *info; }

struct CountingListener : ListenerBase {
  using ListenerBase::ListenerBase;

  void testCaseEnded(const Catch::TestCaseStats& stats) override {
    ListenerBase::testCaseEnded(stats);
    Summary& counts = summary();
    const auto& info = info_of(stats.testInfo);
    const std::string errors = validation ? validation->take_errors() : std::string();
    const bool invalid =
        !errors.empty() && info.tagsAsString().find("[validation-errors]") == std::string::npos;
    if (invalid) std::cout << "FAILED: validation in \"" << info.name << "\":\n" << errors << '\n';
    if (stats.totals.testCases.failed > 0 || invalid) {
      ++counts.failed;
    } else if (!counts.current_skip.empty()) {
      counts.skipped.emplace_back(info.name, counts.current_skip);
    } else {
      ++counts.passed;
    }
    counts.current_skip.clear();
  }
};

CATCH_REGISTER_LISTENER(CountingListener)

}  // namespace

#ifdef MULCIBER_SANITIZED
// Drivers keep some memory for good. Once their library is unloaded, nothing points to this memory,
// and it counts as a leak that no suppression can name; so libraries stay loaded.
extern "C" __attribute__((visibility("default"))) int dlclose(void*) { return 0; }
#endif

void mulciber::tests::skip(std::string reason) { summary().current_skip = std::move(reason); }

int main(int argc, char** argv) {
  const char* validate = std::getenv("MULCIBER_VALIDATE");
  if (validate != nullptr && *validate != '\0' && std::string(validate) != "0")
    validation = std::make_unique<mulciber::tests::ValidationWatch>();
  const int result = Catch::Session().run(argc, argv);
  const Summary& counts = summary();
  if (counts.passed + counts.failed + counts.skipped.size() == 0) return result;
  for (const auto& [name, reason] : counts.skipped)
    std::cout << "skipped: " << name << ": " << reason << '\n';
  std::cout << counts.passed << " passed, " << counts.failed << " failed, " << counts.skipped.size()
            << " skipped\n";
  if (const char* path = std::getenv("MULCIBER_TEST_SUMMARY"))
    std::ofstream(path, std::ios::app)
        << counts.passed << ' ' << counts.failed << ' ' << counts.skipped.size() << '\n';
  if (validation && validation->active()) std::cout << "synchronization validation was active\n";
  return result == 0 && counts.failed > 0 ? 1 : result;
}
