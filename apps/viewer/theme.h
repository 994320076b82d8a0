// Colors: those of the attention page, light and dark (docs/guide/attention-maps.md). Weights are
// even steps of OKLab lightness away from the background, so that their order survives grey
// printing and color blindness.
#pragma once

#include <array>

#include <imgui.h>

namespace mulciber::viewer {

using Rgb = std::array<float, 3>;  // from 0 to 1, as the screen shows them

struct Theme {
  Rgb background, panel, ink, quiet, rule, accent, accent_ink, mark, network;
  std::array<Rgb, 9> weights;  // colors of the weights 0, 1/8, ..., 1
};

const Theme& light_theme();
const Theme& dark_theme();

inline ImVec4 color(const Rgb& rgb, float alpha = 1) { return {rgb[0], rgb[1], rgb[2], alpha}; }
inline ImU32 color32(const Rgb& rgb, float alpha = 1) {
  return ImGui::ColorConvertFloat4ToU32(color(rgb, alpha));
}
Rgb mix(const Rgb& a, const Rgb& b, float share);
Rgb weight_color(const Theme& theme, float weight);

/// Sets ImGui's style. scale: pixels for each pixel of the sizes in the code.
void apply(const Theme& theme, float scale);

}  // namespace mulciber::viewer
