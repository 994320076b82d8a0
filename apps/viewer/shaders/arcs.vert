// An arc for each pair of query and key: a ribbon that faces the camera, along a cubic Bezier curve
// from the query's word to the key's. It reads its weight from the map, which determines its width.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "scene.glsl"

layout(location = 0) out vec3 color;
layout(location = 1) out float across;  // -1 and 1 at the edges

const float kSegments = 24.0;  // with two vertices at each end; drawing.cpp has the same

vec3 on_curve(vec3 a, vec3 b, vec3 c, vec3 d, float t) {
  const float s = 1.0 - t;
  return s * s * s * a + 3.0 * s * s * t * b + 3.0 * s * t * t * c + t * t * t * d;
}

void main() {
  const uint query = uint(gl_InstanceIndex) / keys, key = uint(gl_InstanceIndex) % keys;
  const float weight = texelFetch(maps, ivec3(key, query, map), 0).r;
  color = vec3(0);
  across = 0.0;
  gl_Position = vec4(2, 2, 2, 1);  // outside the clip volume
  if (!(weight >= threshold) || query >= rows) return;

  // Arcs that go far to the side come forward, so that they pass in front of those that do not.
  const vec3 from = words[query].xyz, to = words[queries + key].xyz;
  const float reach = abs(from.x - to.x), height = from.y - to.y;
  const vec3 bow = vec3(0, 0, 0.15 + 0.16 * reach);
  const vec3 b = from + vec3(0, -0.5 * height, 0) + bow, c = to + vec3(0, 0.5 * height, 0) + bow;
  const float t = float(gl_VertexIndex / 2) / kSegments, side = float(gl_VertexIndex % 2) * 2.0 - 1.0;
  vec4 place = view_projection * vec4(on_curve(from, b, c, to, t), 1);
  const vec4 before = view_projection * vec4(on_curve(from, b, c, to, t - 0.01), 1);
  const vec4 behind = view_projection * vec4(on_curve(from, b, c, to, t + 0.01), 1);
  if (min(place.w, min(before.w, behind.w)) < 0.1) return;
  const vec2 along = (behind.xy / behind.w - before.xy / before.w) * viewport;
  const vec2 normal = vec2(-along.y, along.x) / max(length(along), 1e-6);

  const bool focused = (focus_query < 0 || query == uint(focus_query)) &&
                       (focus_key < 0 || key == uint(focus_key));
  const float wide = width * weight / place.w + scale;  // never thinner than a line
  place.xy += normal * side * wide / viewport * place.w;  // half of it is 2 * wide / 2 / viewport
  // Heavier arcs are in front, whatever the distance; of equal arcs the nearer one.
  place.z = place.w * (0.5 - 0.3 * weight - (focused ? 0.15 : 0.0)) + 0.04 * place.z;
  gl_Position = place;
  across = side;
  color = color_of(weight);
  if (!focused) color = mix(color, background.rgb, 0.86);
}
