// SIGTERM and SIGINT, as a server takes them: end what is under way, then stop.
#pragma once

namespace mulciber::apps::serve {

/// From now on these signals only count; the third ends the program at once.
void watch_stop_signals();
/// How many have come.
int stop_signals();

}  // namespace mulciber::apps::serve
