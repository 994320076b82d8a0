#include "apps/serve/stop_signal.h"

#include <csignal>
#include <cstdlib>

#include "apps/cli/command.h"

namespace mulciber::apps::serve {
namespace {

volatile std::sig_atomic_t g_stops = 0;

void on_stop(int) {
  g_stops = g_stops + 1;
  if (g_stops > 2) std::_Exit(kInterrupted);
}

}  // namespace

void watch_stop_signals() {
  struct sigaction action = {};
  action.sa_handler = on_stop;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGINT, &action, nullptr);
}

int stop_signals() { return g_stops; }

}  // namespace mulciber::apps::serve
