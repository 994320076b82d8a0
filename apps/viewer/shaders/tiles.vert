// A map on a tile of the wall.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "scene.glsl"

layout(location = 0) out vec2 place;  // in the map, from its upper left
layout(location = 1) flat out uint shown_map;

void main() {
  const Tile tile = tiles[gl_InstanceIndex];
  place = vec2(gl_VertexIndex & 1, gl_VertexIndex >> 1);
  shown_map = uint(tile.center.w);
  const vec3 corner = tile.center.xyz + tile.right.xyz * (2.0 * place.x - 1.0) +
                      vec3(0, tile.right.w * (1.0 - 2.0 * place.y), 0);
  gl_Position = view_projection * vec4(corner, 1);
}
