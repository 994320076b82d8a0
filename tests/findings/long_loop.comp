// Each invocation counts to a number that it reads.
#version 450
layout(local_size_x = 1) in;
layout(set = 0, binding = 0, std430) readonly buffer Input { uint n[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Output { uint count[]; };

void main() {
  uint i = gl_WorkGroupID.x, counted = 0;
  // The step is read from memory, so that no compiler knows the result beforehand.
  for (uint k = 0; k < n[i]; k += n[0]) ++counted;
  count[i] = counted;
}
