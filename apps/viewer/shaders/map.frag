// A map as a heat map, a cell for each weight. Cells of several pixels have edges one pixel wide;
// where cells are smaller than a pixel, the heaviest shows.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "scene.glsl"

layout(location = 0) in vec2 place;
layout(location = 1) flat in uint shown_map;
layout(location = 0) out vec4 shown;

float weight_at(ivec2 cell) {
  cell = clamp(cell, ivec2(0), ivec2(keys, queries) - 1);
  return uint(cell.y) < rows ? texelFetch(maps, ivec3(cell, shown_map), 0).r : 0.0;
}

void main() {
  const vec2 cell = place * vec2(keys, queries), wide = max(fwidth(cell), vec2(1e-6));
  float weight = 0.0;
  if (max(wide.x, wide.y) > 1.0) {
    const ivec2 count = clamp(ivec2(ceil(wide)), ivec2(1), ivec2(8));
    for (int y = 0; y < count.y; ++y) {
      for (int x = 0; x < count.x; ++x) {
        const vec2 part = (vec2(x, y) + 0.5) / vec2(count) - 0.5;
        weight = max(weight, weight_at(ivec2(floor(cell + part * wide))));
      }
    }
  } else {
    const vec2 corner = floor(cell - 0.5), share = clamp((fract(cell - 0.5) - 0.5) / wide + 0.5, 0.0, 1.0);
    const ivec2 first = ivec2(corner);
    weight = mix(mix(weight_at(first), weight_at(first + ivec2(1, 0)), share.x),
                 mix(weight_at(first + ivec2(0, 1)), weight_at(first + ivec2(1, 1)), share.x), share.y);
  }
  shown = vec4(color_of(weight), 1);
}
