// Draws one triangle over the whole image.
#version 450
layout(location = 0) out vec2 place;

void main() {
  place = vec2(gl_VertexIndex == 1 ? 2 : 0, gl_VertexIndex == 2 ? 2 : 0);
  gl_Position = vec4(2.0 * place - 1.0, 0, 1);
}
