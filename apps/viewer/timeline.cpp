#include "apps/viewer/timeline.h"

#include <algorithm>
#include <cmath>
#include <string>

#include <imgui.h>

#include "apps/viewer/panels.h"

namespace mulciber::viewer {
namespace {

constexpr float kLane = 24, kLeastColumn = 26, kMostColumn = 92;  // pixels of scale 1

/// Tokens of the common prefix of two hypotheses.
size_t common(const Hypothesis& a, const Hypothesis& b) {
  const size_t most = std::min(a.ids.size(), b.ids.size());
  size_t count = 0;
  while (count < most && a.ids[count] == b.ids[count]) ++count;
  return count;
}

/// The number of hypotheses for which there is room below the line of buttons.
size_t lanes_of(const Layout& layout, float scale) {
  const float room = layout.timeline.size().y / scale - 50;
  return static_cast<size_t>(std::max(1.0f, std::floor(room / kLane)));
}

/// Draws a token in the middle of its column, in smaller letters where it needs them, down to a
/// bound.
void draw_token(ImDrawList& list, ImFont* font, const std::string& token, ImVec2 middle,
                float column, ImU32 ink, float scale) {
  const std::string label = label_of(token);
  float size = 14 * scale;
  float width = font->CalcTextSizeA(size, FLT_MAX, 0, label.c_str()).x;
  const float room = column - 6 * scale;
  if (width > room) {
    size = std::max(size * room / width, 9 * scale);
    width = font->CalcTextSizeA(size, FLT_MAX, 0, label.c_str()).x;
  }
  const ImVec4 bounds(middle.x - column / 2, middle.y - kLane * scale, middle.x + column / 2,
                      middle.y + kLane * scale);
  list.AddText(font, size,
               {std::round(std::max(middle.x - width / 2, bounds.x + 2 * scale)),
                std::round(middle.y - size * 0.62f)},
               ink, label.c_str(), nullptr, 0, &bounds);
}

}  // namespace

void draw_timeline(View& view, const Layout& layout, const Session& session, const WordFonts& fonts,
                   Wishes& wishes) {
  const Theme& theme = view.theme();
  const float scale = view.scale;
  begin_panel("timeline", layout.timeline);
  const std::vector<Step>& steps = session.steps();
  if (ImGui::Button(view.playing ? "Pause" : "Play", {64 * scale, 0})) {
    view.playing = !view.playing;
    if (view.playing && view.step + 1 >= steps.size()) view.step = 0;
    view.follow = false;
    view.played = 0;
    wishes.show_step = true;
  }
  ImGui::SameLine();
  if (steps.empty()) {
    ImGui::TextDisabled("%s", session.idle() ? "no text" : "the network is at work");
    ImGui::End();
    return;
  }
  ImGui::Text("step %zu of %zu", view.step + 1, steps.size());
  const Step& step = steps[view.step];
  if (step.size() > 1) {
    ImGui::SameLine();
    ImGui::TextDisabled("%zu other hypotheses", step.size() - 1);
  }

  // Where not all columns fit, those around the step are drawn.
  ImDrawList& list = *ImGui::GetWindowDrawList();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const float scores = 62 * scale;  // at the right
  const float width = room.x - scores;
  const float column = std::clamp(width / static_cast<float>(steps.size()), kLeastColumn * scale,
                                  kMostColumn * scale);
  const auto fitting = static_cast<size_t>(std::max(1.0f, width / column + 0.01f));
  const size_t first =
      steps.size() <= fitting
          ? 0
          : std::min(steps.size() - fitting, view.step > fitting / 2 ? view.step - fitting / 2 : 0);
  const size_t end = std::min(steps.size(), first + fitting);
  const auto middle = [&](size_t i, size_t lane) {
    return ImVec2(at.x + (static_cast<float>(i - first) + 0.5f) * column,
                  at.y + (static_cast<float>(lane) + 0.5f) * kLane * scale);
  };
  const float used = column * static_cast<float>(end - first);
  ImGui::InvisibleButton("steps", {std::max(used, 1.0f), std::max(room.y, kLane * scale)});
  if (ImGui::IsItemActive()) {
    const float along = (ImGui::GetIO().MousePos.x - at.x) / column;
    const auto chosen = static_cast<size_t>(std::max(0.0f, along)) + first;
    view.step = std::min(chosen, steps.size() - 1);
    view.follow = view.playing = false;
    wishes.show_step = true;
  }
  // The playhead is drawn behind everything.
  const ImVec2 head = middle(view.step, 0);
  list.AddRectFilled({head.x - column / 2, at.y}, {head.x + column / 2, at.y + room.y},
                     color32(theme.accent, 0.16f), 4 * scale);
  list.AddRectFilled({head.x - column / 2, at.y}, {head.x + column / 2, at.y + 2 * scale},
                     color32(theme.accent));

  // The best hypothesis of the step, followed by the text's later tokens.
  const Hypothesis& best = step.front();
  const Hypothesis& last = steps.back().front();
  const size_t agreed = common(best, last);
  for (size_t i = first; i < end; ++i) {
    const bool chosen = i < best.tokens.size();
    if (!chosen && (agreed < best.tokens.size() || i >= last.tokens.size())) break;
    const std::string& token = chosen ? best.tokens[i] : last.tokens[i];
    draw_token(list, fonts.small, token, middle(i, 0), column,
               color32(chosen ? theme.ink : mix(theme.panel, theme.quiet, 0.55f)), scale);
  }
  const auto score = [&](const Hypothesis& beam, size_t lane) {
    if (beam.score == 0) return;
    char text[16];
    std::snprintf(text, sizeof(text), "%.2f", static_cast<double>(beam.score));
    const ImVec2 place(at.x + width + 10 * scale,
                       middle(first, lane).y - ImGui::GetTextLineHeight() / 2);
    list.AddText(place, color32(theme.quiet), text);
  };
  score(best, 0);
  const size_t lanes = std::min(step.size(), lanes_of(layout, scale));
  for (size_t lane = 1; lane < lanes; ++lane) {
    const Hypothesis& beam = step[lane];
    // A beam branches off from the lane above with which it shares the longest prefix.
    size_t parent = 0, begin = 0;
    for (size_t other = 0; other < lane; ++other) {
      if (const size_t shared = common(step[other], beam); shared > begin || other == 0) {
        parent = other;
        begin = shared;
      }
    }
    if (begin >= end) continue;
    const Rgb ink = mix(theme.panel, theme.ink, 0.72f);
    const ImU32 line = color32(mix(theme.panel, theme.accent, 0.75f));
    const size_t shown = std::max(begin, first);
    const ImVec2 to(middle(shown, lane).x - column / 2, middle(shown, lane).y);
    if (begin >= first) {
      const float back = begin > 0 ? 0.35f * column : 0;
      const ImVec2 from(to.x - back, middle(shown, parent).y + 0.42f * kLane * scale);
      list.AddBezierCubic(from, {from.x, to.y}, {from.x, to.y}, {to.x + 2 * scale, to.y}, line,
                          1.6f * scale);
    }
    for (size_t i = shown; i < std::min(end, beam.tokens.size()); ++i)
      draw_token(list, fonts.small, beam.tokens[i], middle(i, lane), column, color32(ink), scale);
    score(beam, lane);
  }
  ImGui::End();
}

}  // namespace mulciber::viewer
