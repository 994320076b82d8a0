// Passes SIGINT on to the flag that the library checks while it works.
#pragma once

#include <atomic>
#include <chrono>
#include <thread>

#include "apps/cli/command.h"

namespace mulciber::apps {

/// While it lives, sets `cancel` once SIGINT has come.
class InterruptWatch {
 public:
  explicit InterruptWatch(std::atomic<bool>& cancel)
      : thread_([this, &cancel] {
          while (watching_) {
            if (interrupted()) cancel = true;
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
          }
        }) {}
  ~InterruptWatch() {
    watching_ = false;
    thread_.join();
  }

 private:
  std::atomic<bool> watching_{true};
  std::thread thread_;
};

}  // namespace mulciber::apps
