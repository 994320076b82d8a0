// A grid of turning cubes; push constants are its only input.
#version 450
layout(push_constant) uniform Push {
  float turn;    // radians
  float aspect;  // width over height
  uint side;     // cubes in a row and in a column
};
layout(location = 0) out vec3 normal;
layout(location = 1) out vec3 color;

// A side of a cube that looks along z, as two triangles.
const vec2 kCorners[6] = vec2[](vec2(-1, -1), vec2(1, -1), vec2(1, 1), vec2(-1, -1), vec2(1, 1), vec2(-1, 1));

void main() {
  const int face = gl_VertexIndex / 6;
  const float direction = face < 3 ? 1.0 : -1.0;
  vec3 place = vec3(kCorners[gl_VertexIndex % 6], 1) * direction;
  vec3 outwards = vec3(0, 0, direction);
  for (int i = 0; i < face % 3; ++i) {
    place = place.zxy;
    outwards = outwards.zxy;
  }
  const float angle = turn + 0.3 * float(gl_InstanceIndex);
  const mat3 about_y = mat3(cos(angle), 0, -sin(angle), 0, 1, 0, sin(angle), 0, cos(angle));
  const float tilt = 0.6;
  const mat3 about_x = mat3(1, 0, 0, 0, cos(tilt), sin(tilt), 0, -sin(tilt), cos(tilt));
  normal = about_x * about_y * outwards;
  place = about_x * about_y * (place * 0.5);
  const uvec2 cell = uvec2(gl_InstanceIndex % side, gl_InstanceIndex / side);
  const vec2 center = (vec2(cell) + 0.5 - 0.5 * float(side)) * 2.0;
  color = vec3(vec2(cell + 1) / float(side), 0.6);
  const vec3 seen = vec3(place.xy + center, place.z + 1.3 * float(side));  // by an eye at the origin
  const float near = 0.1, far = 4.0 * float(side);
  gl_Position = vec4(1.2 * seen.x / aspect, 1.2 * seen.y, (seen.z - near) * far / (far - near), seen.z);
}
