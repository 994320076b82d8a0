// The choices of the user, and the layout of the window.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>

#include "apps/viewer/camera.h"
#include "apps/viewer/frames.h"
#include "apps/viewer/theme.h"
#include "apps/viewer/words.h"

namespace mulciber::viewer {

struct View {
  std::string text;  // in the text field
  size_t kind = 0;   // index in Session::kinds()
  uint32_t layer = 0, head = 0;
  size_t step = 0;
  bool follow = true;    // show the last known step
  bool playing = false;  // play the steps one after the other
  double played = 0;     // seconds since the step changed
  float threshold = 0.04f;
  bool one_step = false;  // arcs of this step alone
  bool light = false;
  float scale = 1;
  float budget_ms = 4;
  WordsHovered hovered;   // found in the last frame; this frame shows it
  WordsHovered hovering;  // found in this frame
  Camera camera;
  std::string notice;  // an error, or the work under way
  std::deque<FrameTimes> times;

  const Theme& theme() const { return light ? light_theme() : dark_theme(); }
};

/// The window's parts: a panel at the left, the timeline below, the scene in the rest.
struct Layout {
  Rectangle panel, scene, timeline;
};
Layout lay_out_window(ImVec2 size, float scale, size_t beams);

/// What the user requests in a frame.
struct Wishes {
  bool start = false;  // start with View::text
  bool show_step = false;
};

}  // namespace mulciber::viewer
