// The picked map over the whole viewport.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "scene.glsl"

layout(location = 0) out vec2 place;
layout(location = 1) flat out uint shown_map;

void main() {
  place = vec2(gl_VertexIndex & 1, gl_VertexIndex >> 1);
  shown_map = map;
  gl_Position = vec4(2.0 * place - 1.0, 0, 1);
}
