// The command line of mulciber-viewer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace mulciber::viewer {

struct Options {
  std::string model;  // "": the bundled model
  std::string text = "A woman in a red coat is reading a book on a bench.";
  std::string device;
  std::string kind;  // "": the most informative kind
  std::optional<uint32_t> layer, head, step;
  float threshold = 0.04f;
  bool light = false;
  float scale = 0;  // 0: the monitor's
  uint32_t width = 1280, height = 800;
  uint32_t beams = 4, tokens = 48;
  double budget_ms = 0;  // 0: 4, or 250 where no window must stay fluent
  std::string font;

  bool headless = false;
  uint32_t frames = 0;  // to draw once nothing is left to compute; 0: until the window is closed
  std::string screenshot, report;
  // These stand for a user's mouse in tests.
  std::string drop;
  uint32_t resized_width = 0, resized_height = 0;
};

/// No value where the command line was answered or refused already; `code` is the exit code then.
std::optional<Options> read_options(int argc, char** argv, int& code);

/// The model of this checkout or installation; "" where it has none.
std::string bundled_model();

}  // namespace mulciber::viewer
