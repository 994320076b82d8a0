// Draws a map, one weight a texel, in shades of gray.
#version 450
layout(set = 0, binding = 0) uniform sampler2D map;
layout(location = 0) in vec2 place;
layout(location = 0) out vec4 shown;

void main() {
  shown = vec4(vec3(texture(map, place).r), 1);
}
