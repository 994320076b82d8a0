// The timeline: a column for each step, the best hypothesis in its first lane, and the other beams
// as branches of it.
#pragma once

#include "apps/viewer/session.h"
#include "apps/viewer/view.h"

namespace mulciber::viewer {

void draw_timeline(View& view, const Layout& layout, const Session& session, const WordFonts& fonts,
                   Wishes& wishes);

}  // namespace mulciber::viewer
