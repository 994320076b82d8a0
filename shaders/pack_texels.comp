// Packs numbers from 0 to 1 as normalized integers, several per word; others are clamped.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "interface.h"
#include "texels.h"
#define BUFFER_COUNT 2
#include "buffers.glsl"

PARAMS(PackTexelsParams)
BUFFER(0, readonly, x, float)
BUFFER(1, writeonly, y, uint)

layout(constant_id = TEXELS_FORMAT) const uint FORMAT = TEXELS_UNORM8;

uint normalized(uint at, float largest) {
  if (at >= params.count) return 0;
  return uint(clamp(AT(x, at), 0.0, 1.0) * largest + 0.5);
}

void main() {
  for (uint word = gl_GlobalInvocationID.x; word < params.words; word += params.stride) {
    uint value = 0;
    if (FORMAT == TEXELS_UNORM8) {
      for (uint i = 0; i < 4; ++i) value |= normalized(4 * word + i, 255.0) << (8 * i);
    } else if (FORMAT == TEXELS_UNORM16) {
      value = normalized(2 * word, 65535.0) | (normalized(2 * word + 1, 65535.0) << 16);
    } else {
      value = normalized(word, 255.0) * 0x010101u | 0xff000000u;
    }
    AT(y, word) = value;
  }
}
