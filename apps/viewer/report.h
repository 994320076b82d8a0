// A frame as files: its image, and its contents with their places in the image, for tests and for
// pages that explain it.
#pragma once

#include <string>
#include <vector>

#include "apps/viewer/session.h"
#include "apps/viewer/view.h"
#include "apps/viewer/words.h"

namespace mulciber::viewer {

struct ReportParts {
  const View& view;
  const Session& session;
  const WordCurves& curves;
  const Projection& projection;
  const Rectangle& map;  // rectangle of the picked map
  const std::vector<std::string>&queries, &keys;
  uint32_t rows = 0;
};

/// Writes a PNG file. Throws Error where it cannot be written.
void write_png(const std::string& path, VkExtent2D extent, const std::vector<uint8_t>& rgba);
/// Writes a JSON file. Throws Error where it cannot be written.
void write_report(const std::string& path, const ReportParts& parts);

}  // namespace mulciber::viewer
