// What the person at the window chose, and where the parts of the window stand.
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
  std::string text;  // in the field where it is written
  size_t kind = 0;   // of Session::kinds()
  uint32_t layer = 0, head = 0;
  size_t step = 0;
  bool follow = true;    // the step is the last one there is
  bool playing = false;  // the steps one after the other
  double played = 0;     // seconds since the step changed
  float threshold = 0.04f;
  bool one_step = false;  // arcs of the step alone
  bool light = false;
  float scale = 1;
  float budget_ms = 4;
  WordsHovered hovered;   // in the last frame, which this one shows
  WordsHovered hovering;  // in this one
  Camera camera;
  std::string notice;  // what went wrong, or what is under way
  std::deque<FrameTimes> times;

  const Theme& theme() const { return light ? light_theme() : dark_theme(); }
};

/// The window: a panel at the left, the timeline below, the scene in what is left.
struct Layout {
  Rectangle panel, scene, timeline;
};
Layout lay_out_window(ImVec2 size, float scale, size_t beams);

/// What the person asks for in a frame.
struct Wishes {
  bool start = false;  // with View::text
  bool show_step = false;
};

}  // namespace mulciber::viewer
