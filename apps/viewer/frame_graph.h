// A graph of frame times: the device's time for drawing, and on top of it the network's.
#pragma once

#include "apps/viewer/view.h"

namespace mulciber::viewer {

constexpr float kGraphHeight = 64;  // pixels of scale 1
constexpr size_t kGraphFrames = 120;

void draw_frame_graph(const View& view);

}  // namespace mulciber::viewer
