#include "apps/viewer/panels.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>

#include <imgui.h>
#include <imgui_stdlib.h>

#include "apps/viewer/frame_graph.h"

namespace mulciber::viewer {
namespace {

constexpr float kMapLabels = 74;  // room for labels beside and above the map, pixels of scale 1
constexpr float kLeastLabel = 7;  // smallest legible letters

/// Draws a row of buttons, one of which is pressed. Returns true if another one is pressed now.
bool pick(const char* name, const std::vector<std::string>& words, size_t& picked,
          const Theme& theme) {
  ImGui::TextDisabled("%s", name);
  const float width = ImGui::GetContentRegionAvail().x;
  bool changed = false;
  ImGui::PushID(name);
  if (words.size() > 12) {
    int number = static_cast<int>(picked);
    ImGui::SetNextItemWidth(width);
    changed = ImGui::SliderInt("##", &number, 0, static_cast<int>(words.size()) - 1);
    picked = static_cast<size_t>(number);
  } else if (!words.empty()) {
    const float gap = ImGui::GetStyle().ItemSpacing.x / 2;
    const auto count = static_cast<float>(words.size());
    const float each = std::floor((width - gap * (count - 1)) / count);
    ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, {0, ImGui::GetStyle().FramePadding.y});
    for (size_t i = 0; i < words.size(); ++i) {
      if (i > 0) ImGui::SameLine(0, gap);
      const bool pressed = i == picked;
      if (pressed) {
        for (const ImGuiCol part :
             {ImGuiCol_Button, ImGuiCol_ButtonHovered, ImGuiCol_ButtonActive, ImGuiCol_Border})
          ImGui::PushStyleColor(part, color(theme.accent));
        ImGui::PushStyleColor(ImGuiCol_Text, color(theme.accent_ink));
      }
      if (ImGui::Button((words[i] + "##" + std::to_string(i)).c_str(), {each, 0})) {
        changed = picked != i;
        picked = i;
      }
      if (pressed) ImGui::PopStyleColor(5);
    }
    ImGui::PopStyleVar();
  }
  ImGui::PopID();
  return changed;
}

std::vector<std::string> numbers(uint32_t count) {
  std::vector<std::string> words;
  for (uint32_t i = 0; i < count; ++i) words.push_back(std::to_string(i));
  return words;
}

/// The part of a text that fits, with an ellipsis.
std::string shortened(const std::string& text, ImFont* font, float size, float room) {
  const auto width = [&](const std::string& part) {
    return font->CalcTextSizeA(size, FLT_MAX, 0, part.c_str()).x;
  };
  if (width(text) <= room) return text;
  std::string part = text;
  while (!part.empty() && width(part + "\xe2\x80\xa6") > room) {
    do {
      part.pop_back();
    } while (!part.empty() && (static_cast<unsigned char>(part.back()) & 0xc0) == 0x80);
  }
  return part + "\xe2\x80\xa6";
}

/// Draws text that is read upwards; `place`: the upper left of its first letter if it were turned
/// back.
void draw_upright(ImDrawList& list, ImFont* font, float size, ImVec2 place, ImU32 ink,
                  const std::string& text) {
  const int first = list.VtxBuffer.Size;
  list.AddText(font, size, place, ink, text.c_str());
  for (int i = first; i < list.VtxBuffer.Size; ++i) {
    ImVec2& corner = list.VtxBuffer[i].pos;
    corner = {place.x + (corner.y - place.y), place.y - (corner.x - place.x)};
  }
}

/// Draws the picked map with its tokens, in whole pixels for each weight.
MapPlace draw_map(View& view, const PanelParts& parts, float height) {
  const Theme& theme = view.theme();
  ImDrawList& list = *ImGui::GetWindowDrawList();
  const float scale = view.scale;
  const auto columns = static_cast<float>(parts.keys.size()),
             rows = static_cast<float>(parts.queries.size());
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float wide = ImGui::GetContentRegionAvail().x;
  MapPlace place;
  if (columns < 1 || rows < 1) return place;
  const auto cell_beside = [&](float labels) {
    return std::min((wide - labels) / columns, (height - labels) / rows);
  };
  // Labels too small to read are left out.
  const bool labeled = 0.95f * cell_beside(kMapLabels * scale) >= kLeastLabel * scale;
  const float room = labeled ? kMapLabels * scale : 0, share = cell_beside(room);
  const float cell = share >= 8 ? std::floor(share) : share;
  const ImVec2 corner(std::floor(at.x + room), std::floor(at.y + room));
  place.rectangle = {corner,
                     {corner.x + std::ceil(cell * columns), corner.y + std::ceil(cell * rows)}};
  ImGui::Dummy({wide, room + cell * rows});

  const float size = std::min(12.5f * scale, cell * 0.95f);
  ImFont* font = parts.fonts.small;
  for (size_t i = 0; labeled && i < parts.queries.size(); ++i) {
    const std::string label = shortened(label_of(parts.queries[i]), font, size, room - 8 * scale);
    const ImVec2 extent = font->CalcTextSizeA(size, FLT_MAX, 0, label.c_str());
    const bool on = view.hovered.query == static_cast<int>(i);
    list.AddText(font, size,
                 {std::round(corner.x - extent.x - 5 * scale),
                  std::round(corner.y + (static_cast<float>(i) + 0.5f) * cell - extent.y / 2)},
                 color32(on ? theme.mark : theme.ink), label.c_str());
  }
  for (size_t i = 0; labeled && i < parts.keys.size(); ++i) {
    const std::string label = shortened(label_of(parts.keys[i]), font, size, room - 8 * scale);
    const bool on = view.hovered.key == static_cast<int>(i);
    draw_upright(list, font, size,
                 {std::round(corner.x + (static_cast<float>(i) + 0.5f) * cell - size / 2),
                  corner.y - 5 * scale},
                 color32(on ? theme.mark : theme.ink), label);
  }
  parts.draw_map(place.rectangle);
  place.drawn = true;
  list.AddRect(place.rectangle.min, place.rectangle.max, color32(theme.rule), 0, 0, scale);
  const ImVec2 mouse = ImGui::GetIO().MousePos;
  if (place.rectangle.contains(mouse)) {
    const auto key = static_cast<int>((mouse.x - corner.x) / cell),
               query = static_cast<int>((mouse.y - corner.y) / cell);
    view.hovering = {query, key};
    const ImVec2 first(corner.x + static_cast<float>(key) * cell,
                       corner.y + static_cast<float>(query) * cell);
    list.AddRect(first, {first.x + cell, first.y + cell}, color32(theme.mark), 0, 0, 2 * scale);
  }
  return place;
}

/// Draws the legend of the colors.
void draw_legend(const View& view) {
  const Theme& theme = view.theme();
  ImDrawList& list = *ImGui::GetWindowDrawList();
  ImGui::TextDisabled("0");
  ImGui::SameLine();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x - 20 * view.scale,
              height = ImGui::GetTextLineHeight();
  constexpr int kParts = 8;
  for (int i = 0; i < kParts; ++i) {
    const float share = 1.0f / kParts, from = static_cast<float>(i) * share;
    const ImU32 left = color32(weight_color(theme, from)),
                right = color32(weight_color(theme, from + share));
    list.AddRectFilledMultiColor({at.x + width * from, at.y + 0.25f * height},
                                 {at.x + width * (from + share), at.y + 0.85f * height}, left,
                                 right, right, left);
  }
  ImGui::Dummy({width, height});
  ImGui::SameLine();
  ImGui::TextDisabled("1");
}

}  // namespace

void begin_panel(const char* name, const Rectangle& rectangle) {
  ImGui::SetNextWindowPos(rectangle.min);
  ImGui::SetNextWindowSize(rectangle.size());
  ImGui::PushStyleVar(ImGuiStyleVar_WindowRounding, 0);
  ImGui::Begin(name, nullptr,
               ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove |
                   ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_NoBringToFrontOnFocus);
  ImGui::PopStyleVar();
}

MapPlace draw_panel(View& view, const Layout& layout, const PanelParts& parts, Wishes& wishes) {
  const Session& session = parts.session;
  const Theme& theme = view.theme();
  begin_panel("panel", layout.panel);
  ImGui::PushFont(parts.fonts.large);
  ImGui::SetWindowFontScale(0.62f);
  ImGui::TextUnformatted("Mulciber");
  ImGui::SetWindowFontScale(1);
  ImGui::PopFont();
  ImGui::SameLine();
  ImGui::AlignTextToFramePadding();
  const float button = 56 * view.scale;
  const float named = ImGui::GetContentRegionAvail().x - button - ImGui::GetStyle().ItemSpacing.x;
  ImGui::TextDisabled(
      "%s", shortened(session.model_name(), ImGui::GetFont(), ImGui::GetFontSize(), named).c_str());
  ImGui::SameLine(layout.panel.size().x - button - ImGui::GetStyle().WindowPadding.x);
  if (ImGui::Button(view.light ? "dark" : "light", {button, 0})) view.light = !view.light;

  const char* verb = session.continues() ? "Continue" : "Translate";
  const float verb_width = ImGui::CalcTextSize(verb).x + 2 * ImGui::GetStyle().FramePadding.x;
  ImGui::SetNextItemWidth(ImGui::GetContentRegionAvail().x - verb_width -
                          ImGui::GetStyle().ItemSpacing.x);
  if (ImGui::InputText("##text", &view.text, ImGuiInputTextFlags_EnterReturnsTrue))
    wishes.start = true;
  ImGui::SameLine();
  if (ImGui::Button(verb)) wishes.start = true;
  const float lines = ImGui::GetTextLineHeightWithSpacing() * 2.2f;
  ImGui::BeginChild("result", {0, lines}, false, ImGuiWindowFlags_NoScrollbar);
  ImGui::PushStyleColor(ImGuiCol_Text, color(view.notice.empty() ? theme.accent : theme.mark));
  const std::string& said = view.notice.empty() ? session.result() : view.notice;
  ImGui::TextWrapped("%s", said.c_str() + std::min(said.size(), said.find_first_not_of(" \n")));
  ImGui::PopStyleColor();
  ImGui::EndChild();

  MapPlace place;
  if (!session.kinds().empty()) {
    std::vector<std::string> names;
    for (const MapKind& kind : session.kinds()) names.push_back(kind.name);
    pick("Attention", names, view.kind, theme);
    const MapKind& kind = session.kinds()[view.kind];
    size_t layer = std::min(view.layer, kind.layers - 1),
           head = std::min(view.head, kind.heads - 1);
    pick("Layer", numbers(kind.layers), layer, theme);
    pick("Head", numbers(kind.heads), head, theme);
    view.layer = static_cast<uint32_t>(layer);
    view.head = static_cast<uint32_t>(head);
    ImGui::SetNextItemWidth(110 * view.scale);
    ImGui::SliderFloat("arcs from", &view.threshold, 0, 1, "%.2f");
    ImGui::SameLine();
    ImGui::Checkbox("this step", &view.one_step);
    const float below = kGraphHeight * view.scale + 4.2f * ImGui::GetTextLineHeightWithSpacing();
    const float room = ImGui::GetContentRegionAvail().y - below;
    place = draw_map(view, parts, std::max(room, 120 * view.scale));
    draw_legend(view);
  }
  ImGui::SetCursorPosY(std::max(ImGui::GetCursorPosY(), layout.panel.size().y -
                                                            (kGraphHeight + 34) * view.scale -
                                                            ImGui::GetTextLineHeightWithSpacing()));
  draw_frame_graph(view);
  ImGui::End();
  return place;
}

Layout lay_out_window(ImVec2 size, float scale, size_t beams) {
  const float panel = std::floor(std::min(330 * scale, size.x * 0.45f));
  const float lanes = static_cast<float>(std::clamp<size_t>(beams, 1, 6));
  const float timeline = std::floor(std::min((64 + 24 * lanes) * scale, size.y * 0.4f));
  return {.panel = {{0, 0}, {panel, size.y}},
          .scene = {{panel, 0}, {size.x, size.y - timeline}},
          .timeline = {{panel, size.y - timeline}, {size.x, size.y}}};
}

}  // namespace mulciber::viewer
