// The middle of an arc has the color of its weight; towards its edges it darkens or pales a little,
// so that arcs that cross can be told apart.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "scene.glsl"

layout(location = 0) in vec3 color;
layout(location = 1) in float across;
layout(location = 0) out vec4 shown;

void main() {
  const float edge = smoothstep(0.55, 1.0, abs(across));
  shown = vec4(mix(color, background.rgb, 0.45 * edge), 1);
}
