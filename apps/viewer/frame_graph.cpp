#include "apps/viewer/frame_graph.h"

#include <algorithm>
#include <cstdio>

#include <imgui.h>

namespace mulciber::viewer {

void draw_frame_graph(const View& view) {
  const Theme& theme = view.theme();
  ImDrawList& list = *ImGui::GetWindowDrawList();
  const FrameTimes last = view.times.empty() ? FrameTimes{} : view.times.back();
  const auto key = [&](const Rgb& shown, const char* name, float ms) {
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const float side = ImGui::GetTextLineHeight() * 0.6f;
    list.AddRectFilled({at.x, at.y + side * 0.35f}, {at.x + side, at.y + side * 1.35f},
                       color32(shown));
    ImGui::Dummy({side, side});
    ImGui::SameLine(0, 5 * view.scale);
    ImGui::TextDisabled("%s %.1f ms", name, static_cast<double>(ms));
  };
  const Rgb drawing = mix(theme.panel, theme.quiet, 0.7f);
  key(drawing, "drawing", last.drawing);
  ImGui::SameLine(0, 14 * view.scale);
  key(theme.network, "network", last.network);

  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x, height = kGraphHeight * view.scale;
  float most = 20;  // ms at the upper edge: a little more than a frame at 60 Hz
  for (const FrameTimes& times : view.times)
    most = std::max(most, 1.15f * (times.drawing + times.network));
  list.AddRectFilled(at, {at.x + width, at.y + height},
                     color32(mix(theme.panel, theme.background, 0.6f)), 4 * view.scale);
  const float each = width / static_cast<float>(kGraphFrames);
  const float bottom = at.y + height;
  const size_t first = kGraphFrames - std::min(kGraphFrames, view.times.size());
  for (size_t i = 0; i < view.times.size() && i < kGraphFrames; ++i) {
    const FrameTimes& times = view.times[i];
    const float left = at.x + static_cast<float>(first + i) * each,
                right = left + std::max(1.0f, each - 0.5f * view.scale);
    const float drawn = height * times.drawing / most, computed = height * times.network / most;
    list.AddRectFilled({left, bottom - drawn}, {right, bottom}, color32(drawing));
    list.AddRectFilled({left, bottom - drawn - computed}, {right, bottom - drawn},
                       color32(theme.network));
  }
  const float line = bottom - height * (1000.0f / 60) / most;
  list.AddLine({at.x, line}, {at.x + width, line}, color32(theme.quiet, 0.6f), view.scale);
  const ImVec2 extent = ImGui::CalcTextSize("16.7 ms");
  const ImVec2 place(at.x + width - extent.x - 4 * view.scale,
                     std::max(at.y, line - extent.y - view.scale));
  list.AddRectFilled(place, {place.x + extent.x, place.y + extent.y}, color32(theme.panel, 0.75f));
  list.AddText(place, color32(theme.ink), "16.7 ms");
  ImGui::Dummy({width, height});
}

}  // namespace mulciber::viewer
