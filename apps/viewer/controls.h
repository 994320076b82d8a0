// Mouse and keyboard over the scene.
#pragma once

#include <array>
#include <optional>

#include "apps/viewer/heat_maps.h"
#include "apps/viewer/session.h"
#include "apps/viewer/view.h"

namespace mulciber::viewer {

/// Handles orbit, pan, zoom, and the keys of docs/guide/viewer.md.
void control(View& view, const Layout& layout, const Session& session, Wishes& wishes);

/// The corners of a tile in the window: upper left, upper right, lower right, lower left. No value
/// where the tile is behind the camera.
std::optional<std::array<ImVec2, 4>> corners_of(const Tile& tile, const Projection& projection);

/// Draws labels of the wall and the frame of the picked tile, and picks another tile on a click.
void draw_wall(ImDrawList& list, View& view, const Wall& wall, const MapKind& kind,
               const Projection& projection, const WordFonts& fonts);

}  // namespace mulciber::viewer
