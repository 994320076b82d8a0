// The panel beside the scene: text, pickers, the picked map, frame times.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "apps/viewer/session.h"
#include "apps/viewer/view.h"

namespace mulciber::viewer {

/// The place of the picked map, for tests.
struct MapPlace {
  Rectangle rectangle;
  bool drawn = false;
};

struct PanelParts {
  const Session& session;
  const std::vector<std::string>&queries, &keys;
  WordFonts fonts;
  /// Draws the picked map into a rectangle of the image, inside of the render pass.
  std::function<void(const Rectangle&)> draw_map;
};

MapPlace draw_panel(View& view, const Layout& layout, const PanelParts& parts, Wishes& wishes);

/// Begins a panel that fills a rectangle.
void begin_panel(const char* name, const Rectangle& rectangle);

}  // namespace mulciber::viewer
