// packHalf2x16 of infinities, and of numbers beyond f16, which round to them.
#version 450
layout(local_size_x = 1) in;
layout(set = 0, binding = 0, std430) readonly buffer Input { float x[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Output { uint bits[]; };

void main() {
  uint i = gl_WorkGroupID.x;
  bits[i] = packHalf2x16(vec2(x[i], 0));
}
