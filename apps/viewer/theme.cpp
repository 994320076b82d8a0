#include "apps/viewer/theme.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace mulciber::viewer {
namespace {

constexpr Rgb rgb(uint32_t hex) {
  return {static_cast<float>(hex >> 16 & 255) / 255, static_cast<float>(hex >> 8 & 255) / 255,
          static_cast<float>(hex & 255) / 255};
}

constexpr Theme kLight = {
    .background = rgb(0xf4f6f7),
    .panel = rgb(0xffffff),
    .ink = rgb(0x1b1f24),
    .quiet = rgb(0x5a6470),
    .rule = rgb(0xd5dade),
    .accent = rgb(0x0b6e8f),
    .accent_ink = rgb(0xffffff),
    .mark = rgb(0xd6336c),
    .network = rgb(0x0d789f),
    .weights = {rgb(0xf6fcf8), rgb(0xb6ead7), rgb(0x7cd2c7), rgb(0x3db7be), rgb(0x0199b2),
                rgb(0x0d789f), rgb(0x05598e), rgb(0x153a77), rgb(0x1a1c5a)}};
constexpr Theme kDark = {
    .background = rgb(0x0f1115),
    .panel = rgb(0x171a20),
    .ink = rgb(0xe7eaee),
    .quiet = rgb(0x9aa5b1),
    .rule = rgb(0x2f353e),
    .accent = rgb(0x4fc3c8),
    .accent_ink = rgb(0x0b1417),
    .mark = rgb(0xff7aa8),
    .network = rgb(0x06ae9d),
    .weights = {rgb(0x171923), rgb(0x1c304c), rgb(0x044c72), rgb(0x076b85), rgb(0x048b97),
                rgb(0x06ae9d), rgb(0x56cd95), rgb(0xa5e58d), rgb(0xebf990)}};

}  // namespace

const Theme& light_theme() { return kLight; }
const Theme& dark_theme() { return kDark; }

Rgb mix(const Rgb& a, const Rgb& b, float share) {
  Rgb mixed;
  for (size_t i = 0; i < 3; ++i) mixed[i] = a[i] * (1 - share) + b[i] * share;
  return mixed;
}

Rgb weight_color(const Theme& theme, float weight) {
  const float at = std::clamp(weight, 0.0f, 1.0f) * 8;
  const size_t low = std::min(static_cast<size_t>(at), size_t{7});
  return mix(theme.weights[low], theme.weights[low + 1], at - static_cast<float>(low));
}

void apply(const Theme& theme, float scale) {
  ImGuiStyle style;
  style.WindowRounding = style.FrameRounding = style.GrabRounding = style.PopupRounding = 5;
  style.WindowBorderSize = 0;
  style.FrameBorderSize = 1;
  style.WindowPadding = {14, 12};
  style.FramePadding = {8, 4};
  style.ItemSpacing = {7, 7};
  style.ScrollbarSize = 10;
  style.ScaleAllSizes(scale);
  ImVec4* colors = style.Colors;
  const Rgb raised = mix(theme.panel, theme.ink, 0.05f),
            hovered = mix(theme.panel, theme.ink, 0.1f);
  colors[ImGuiCol_Text] = color(theme.ink);
  colors[ImGuiCol_TextDisabled] = color(theme.quiet);
  colors[ImGuiCol_WindowBg] = colors[ImGuiCol_PopupBg] = color(theme.panel);
  colors[ImGuiCol_Border] = color(theme.rule);
  colors[ImGuiCol_FrameBg] = colors[ImGuiCol_Button] = color(raised);
  colors[ImGuiCol_FrameBgHovered] = colors[ImGuiCol_ButtonHovered] = color(hovered);
  colors[ImGuiCol_FrameBgActive] = colors[ImGuiCol_ButtonActive] =
      color(mix(theme.panel, theme.accent, 0.35f));
  colors[ImGuiCol_CheckMark] = colors[ImGuiCol_SliderGrab] = colors[ImGuiCol_SliderGrabActive] =
      color(theme.accent);
  colors[ImGuiCol_Header] = colors[ImGuiCol_HeaderHovered] = colors[ImGuiCol_HeaderActive] =
      color(mix(theme.panel, theme.accent, 0.25f));
  colors[ImGuiCol_Separator] = color(theme.rule);
  colors[ImGuiCol_ScrollbarBg] = color(theme.panel);
  colors[ImGuiCol_ScrollbarGrab] = color(theme.rule);
  colors[ImGuiCol_ScrollbarGrabHovered] = colors[ImGuiCol_ScrollbarGrabActive] = color(theme.quiet);
  colors[ImGuiCol_TextSelectedBg] = color(theme.accent, 0.35f);
  colors[ImGuiCol_NavHighlight] = color(theme.accent);
  ImGui::GetStyle() = style;
}

}  // namespace mulciber::viewer
