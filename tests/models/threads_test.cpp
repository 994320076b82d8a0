// Applications in several threads: each with a device of its own, or on one queue that they share.
// Build with -DMULCIBER_SANITIZE=thread to find unguarded accesses (docs/internals/testing.md);
// MULCIBER_THREAD_ROUNDS is how often each thread translates.
#include <atomic>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "tests/catch.h"
#include "tests/support.h"
#include "tests/vulkan_application.h"

#include "mulciber/embedding.h"

using namespace mulciber;
using namespace mulciber::tests;

namespace {

const std::string kThreadTexts[] = {"The old house stands near the river.",
                                    "He has two dogs and a cat."};

std::string bundled() { return (source_dir() / "assets/en-de").string(); }

int rounds_wanted() {
  const char* rounds = std::getenv("MULCIBER_THREAD_ROUNDS");
  return rounds ? std::atoi(rounds) : 3;
}

/// Translates in slices `rounds` times. Returns how often the text was not `expected`, or -1 after
/// an exception. A test's checks may run in its own thread alone.
int translate_often(int rounds, Translator& translator, const std::string& text,
                    const std::string& expected) {
  int wrong = 0;
  try {
    for (int i = 0; i < rounds; ++i) {
      TranslationTask task(translator, text);
      while (!task.done()) {
        if (task.step(2000).waits) task.wait();
      }
      if (task.result().text != expected) ++wrong;
    }
  } catch (const std::exception&) {
    return -1;
  }
  return wrong;
}

/// Translates the two texts at once, each on the device that `adopt` gives its thread.
void translate_at_once(const std::function<std::shared_ptr<Device>(int)>& adopt) {
  std::string expected[2];
  {
    Translator translator(adopt(0), bundled());
    for (int i = 0; i < 2; ++i) expected[i] = translator.translate(kThreadTexts[i]).text;
  }
  int wrong[2] = {-1, -1};
  const auto work = [&](int i) {
    try {
      Translator translator(adopt(i), bundled());
      wrong[i] = translate_often(rounds_wanted(), translator, kThreadTexts[i], expected[i]);
    } catch (const std::exception&) {
    }
  };
  std::thread other(work, 1);
  work(0);
  other.join();
  CHECK(wrong[0] == 0);
  CHECK(wrong[1] == 0);
}

}  // namespace

TEST_CASE("Two threads translate on devices of their own") {
  VulkanApplication applications[2];
  translate_at_once([&](int thread) { return adopt_device(applications[thread].lent()); });
}

TEST_CASE(
    "Two threads adopt one device each for itself, and share its queue by the application's lock") {
  VulkanApplication application;
  std::mutex queue;
  ApplicationDevice lent = application.lent();
  lent.queue.lock = [&] { queue.lock(); };
  lent.queue.unlock = [&] { queue.unlock(); };
  translate_at_once([&](int) { return adopt_device(lent); });
}
