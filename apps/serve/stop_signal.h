// Handles SIGTERM and SIGINT for a server: it ends what is under way, then stops.
#pragma once

namespace mulciber::apps::serve {

/// From now on these signals are counted; the third ends the program at once.
void watch_stop_signals();
/// The number of signals that have come.
int stop_signals();

}  // namespace mulciber::apps::serve
