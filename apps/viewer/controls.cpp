#include "apps/viewer/controls.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include <GLFW/glfw3.h>
#include <imgui.h>

namespace mulciber::viewer {
namespace {

constexpr float kStepSeconds = 0.4f;  // for a step during playback

void play(View& view, size_t steps, Wishes& wishes) {
  if (!view.playing || steps == 0) return;
  view.played += static_cast<double>(ImGui::GetIO().DeltaTime);
  if (view.played < static_cast<double>(kStepSeconds)) return;
  view.played = 0;
  wishes.show_step = true;
  if (view.step + 1 < steps) {
    ++view.step;
  } else {
    view.playing = false;
  }
}

void use_keys(View& view, const Session& session, Wishes& wishes) {
  const ImGuiIO& io = ImGui::GetIO();
  const size_t steps = session.steps().size();
  const auto pressed = [](int key) { return ImGui::IsKeyPressed(key); };
  const auto go = [&](size_t step) {
    view.step = step;
    view.follow = view.playing = false;
    wishes.show_step = true;
  };
  if (pressed(GLFW_KEY_LEFT) && view.step > 0) go(view.step - 1);
  if (pressed(GLFW_KEY_RIGHT) && view.step + 1 < steps) go(view.step + 1);
  if (pressed(GLFW_KEY_END) && steps > 0) go(steps - 1);
  if (pressed(GLFW_KEY_SPACE)) {
    view.playing = !view.playing;
    view.follow = false;
    if (view.playing && view.step + 1 >= steps) view.step = 0;
    wishes.show_step = true;
  }
  if (pressed(GLFW_KEY_T)) view.light = !view.light;
  if (pressed(GLFW_KEY_HOME)) view.camera.reset();
  if (!session.kinds().empty()) {
    const MapKind& kind = session.kinds()[view.kind];
    if (pressed(GLFW_KEY_UP)) view.layer = std::min(view.layer + 1, kind.layers - 1);
    if (pressed(GLFW_KEY_DOWN) && view.layer > 0) --view.layer;
    if (pressed(GLFW_KEY_PERIOD)) view.head = (view.head + 1) % kind.heads;
    if (pressed(GLFW_KEY_COMMA)) view.head = (view.head + kind.heads - 1) % kind.heads;
    if (pressed(GLFW_KEY_K)) view.kind = (view.kind + 1) % session.kinds().size();
  }
  const float angle = 1.2f * io.DeltaTime;
  if (ImGui::IsKeyDown(GLFW_KEY_A)) view.camera.turn(-angle, 0);
  if (ImGui::IsKeyDown(GLFW_KEY_D)) view.camera.turn(angle, 0);
  if (ImGui::IsKeyDown(GLFW_KEY_W)) view.camera.turn(0, angle);
  if (ImGui::IsKeyDown(GLFW_KEY_S)) view.camera.turn(0, -angle);
  if (ImGui::IsKeyDown(GLFW_KEY_Q)) view.camera.zoom(1 + angle);
  if (ImGui::IsKeyDown(GLFW_KEY_E)) view.camera.zoom(1 / (1 + angle));
}

bool inside(const std::array<ImVec2, 4>& corners, ImVec2 point) {
  for (size_t i = 0; i < 4; ++i) {
    const ImVec2 a = corners[i], b = corners[(i + 1) % 4];
    if ((b.x - a.x) * (point.y - a.y) - (b.y - a.y) * (point.x - a.x) < 0) return false;
  }
  return true;
}

}  // namespace

void control(View& view, const Layout& layout, const Session& session, Wishes& wishes) {
  const ImGuiIO& io = ImGui::GetIO();
  if (!io.WantTextInput) use_keys(view, session, wishes);
  play(view, session.steps().size(), wishes);
  if (io.WantCaptureMouse) return;
  const float height = layout.scene.size().y;
  if (ImGui::IsMouseDragging(ImGuiMouseButton_Left))
    view.camera.turn(-io.MouseDelta.x * 3 / height, io.MouseDelta.y * 3 / height);
  if (ImGui::IsMouseDragging(ImGuiMouseButton_Right) ||
      ImGui::IsMouseDragging(ImGuiMouseButton_Middle))
    view.camera.move(-io.MouseDelta.x / height, io.MouseDelta.y / height);
  if (io.MouseWheel != 0 && layout.scene.contains(io.MousePos))
    view.camera.zoom(std::exp(-0.12f * io.MouseWheel));
}

std::optional<std::array<ImVec2, 4>> corners_of(const Tile& tile, const Projection& projection) {
  const glm::vec3 center(tile.center), right(tile.right), up(0, tile.right.w, 0);
  std::array<ImVec2, 4> corners;
  const std::array<glm::vec3, 4> places = {center - right + up, center + right + up,
                                           center + right - up, center - right - up};
  for (size_t i = 0; i < 4; ++i) {
    const Projected projected = projection(places[i]);
    if (projected.depth <= 0) return std::nullopt;
    corners[i] = projected.place;
  }
  return corners;
}

void draw_wall(ImDrawList& list, View& view, const Wall& wall, const MapKind& kind,
               const Projection& projection, const WordFonts& fonts) {
  const Theme& theme = view.theme();
  const ImGuiIO& io = ImGui::GetIO();
  const float scale = view.scale;
  const bool over_scene = !io.WantCaptureMouse && projection.rectangle.contains(io.MousePos);
  const ImVec2 dragged = ImGui::GetMouseDragDelta(ImGuiMouseButton_Left, 0);
  const bool clicked = over_scene && ImGui::IsMouseReleased(ImGuiMouseButton_Left) &&
                       std::abs(dragged.x) + std::abs(dragged.y) < 4 * scale;
  const auto write = [&](const std::string& text, ImVec2 place, float across, float down,
                         bool picked, float room) {
    const float size = std::min(14 * scale, room);
    if (size < 8 * scale) return;
    const ImVec2 extent = fonts.small->CalcTextSizeA(size, FLT_MAX, 0, text.c_str());
    list.AddText(fonts.small, size,
                 {std::round(place.x - across * extent.x), std::round(place.y - down * extent.y)},
                 color32(picked ? theme.mark : theme.quiet), text.c_str());
  };
  for (size_t i = 0; i < wall.tiles.size(); ++i) {
    const auto corners = corners_of(wall.tiles[i], projection);
    if (!corners) continue;
    const auto layer = static_cast<uint32_t>(i) / kind.heads,
               head = static_cast<uint32_t>(i) % kind.heads;
    const bool picked = layer == view.layer && head == view.head;
    const bool hovered = over_scene && inside(*corners, io.MousePos);
    if (hovered && clicked) {
      view.layer = layer;
      view.head = head;
    }
    list.AddPolyline(corners->data(), 4, color32(picked || hovered ? theme.mark : theme.rule),
                     ImDrawFlags_Closed, (picked ? 2.5f : 1) * scale);
    const float width = (*corners)[1].x - (*corners)[0].x,
                height = (*corners)[3].y - (*corners)[0].y;
    // Labels have the name of the axis too, where there is room.
    const auto label = [](const char* axis, uint32_t number, bool named) {
      return (named ? axis + std::string(" ") : std::string()) + std::to_string(number);
    };
    const bool across = wall.layers_across;
    const uint32_t column = across ? layer : head, row = across ? head : layer;
    const uint32_t top = (across ? kind.heads : kind.layers) - 1;
    const uint32_t picked_column = across ? view.layer : view.head,
                   picked_row = across ? view.head : view.layer;
    if (column == 0)
      write(label(across ? "head" : "layer", row, height > 13 * scale),
            {(*corners)[0].x - 8 * scale, ((*corners)[0].y + (*corners)[3].y) / 2}, 1, 0.5f,
            row == picked_row, height * 0.9f);
    const bool narrow = width <= 48 * scale;
    if (row == top && column == 0 && narrow)
      write(across ? "layer" : "head",
            {(*corners)[0].x - 8 * scale, std::min((*corners)[0].y, (*corners)[1].y) - 4 * scale},
            1, 1, false, 14 * scale);
    if (row == top)
      write(label(across ? "layer" : "head", column, !narrow),
            {((*corners)[0].x + (*corners)[1].x) / 2,
             std::min((*corners)[0].y, (*corners)[1].y) - 4 * scale},
            0.5f, 1, column == picked_column, width * 0.7f);
  }
}

}  // namespace mulciber::viewer
