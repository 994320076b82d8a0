#version 450
layout(location = 0) in vec3 normal;
layout(location = 1) in vec3 color;
layout(location = 0) out vec4 shown;

void main() {
  const vec3 light = normalize(vec3(0.4, -0.7, -0.6));  // towards it
  shown = vec4(color * (0.15 + 0.85 * max(dot(normalize(normal), light), 0.0)), 1);
}
