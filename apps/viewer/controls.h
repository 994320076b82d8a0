// Mouse and keyboard over the scene.
#pragma once

#include <array>
#include <optional>

#include "apps/viewer/heat_maps.h"
#include "apps/viewer/session.h"
#include "apps/viewer/view.h"

namespace mulciber::viewer {

/// Orbit, pan, zoom, and the keys of docs/guide/viewer.md.
void control(View& view, const Layout& layout, const Session& session, Wishes& wishes);

/// Where the corners of a tile are in the window: upper left, upper right, lower right, lower left.
/// None where it is behind the eye.
std::optional<std::array<ImVec2, 4>> corners_of(const Tile& tile, const Projection& projection);

/// Labels of the wall, the frame of the picked tile, and the choice of another one by a click.
void draw_wall(ImDrawList& list, View& view, const Wall& wall, const MapKind& kind,
               const Projection& projection, const WordFonts& fonts);

}  // namespace mulciber::viewer
