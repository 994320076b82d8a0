// Unfolds the normalized pixels of images into a row for each patch: channel by channel, and within
// a channel the patch's lines of pixels one after another. The product of a row then equals a
// convolution whose stride is its size. One invocation per element, or per word of halves.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "interface.h"
#include "patches.h"
#define BUFFER_COUNT 2
#include "buffers.glsl"

layout(constant_id = PATCHES_SIZE) const uint SIZE = 16;
layout(constant_id = PATCHES_CHANNELS) const uint CHANNELS = 3;
layout(constant_id = PATCHES_BYTES) const uint BYTES = 0;

PARAMS(UnfoldPatchesParams)
// Words of four bytes, (image, y, x); or f32, (image, channel, y, x).
BUFFER(0, readonly, pixels, uint)

float channel_of(uint image, uint y, uint x, uint channel) {
  uint pixel = y * params.width + x, area = params.height * params.width;
  vec4 scale = vec4(params.scale_0, params.scale_1, params.scale_2, params.scale_3);
  vec4 shift = vec4(params.shift_0, params.shift_1, params.shift_2, params.shift_3);
  float value;
  if (BYTES == 1) {
    uint word = AT(pixels, image * area + pixel);
    value = float((word >> (8 * channel)) & 255u);
  } else {
    value = uintBitsToFloat(AT(pixels, (image * CHANNELS + channel) * area + pixel));
  }
  return value * scale[channel] + shift[channel];
}

float element(uint at) {
  uint columns = CHANNELS * SIZE * SIZE;
  uint row = at / columns, column = at - row * columns;
  uint image = row / params.rows, token = row - image * params.rows;
  if (token < params.zero_rows) return 0;
  uint patch_number = token - params.zero_rows, across = params.width / SIZE;
  uint channel = column / (SIZE * SIZE), inside = column - channel * (SIZE * SIZE);
  uint line = inside / SIZE;
  return channel_of(image, patch_number / across * SIZE + line,
                    patch_number % across * SIZE + inside - line * SIZE, channel);
}

#ifdef ACTIVATION_F16
BUFFER(1, , y, uint)
void main() {
  uint stride = gl_NumWorkGroups.x * LOCAL_SIZE;
  for (uint word = gl_GlobalInvocationID.x; word < (params.elements + 1) / 2; word += stride) {
    bool both = 2 * word + 1 < params.elements;
    uint bits = packHalf2x16(vec2(element(2 * word), both ? element(2 * word + 1) : 0));
    // The half after an odd number of elements must not change.
    AT(y, word) = both ? bits : (bits & 0xffffu) | (AT(y, word) & 0xffff0000u);
  }
}
#else
BUFFER(1, writeonly, y, float)
void main() {
  uint stride = gl_NumWorkGroups.x * LOCAL_SIZE;
  for (uint at = gl_GlobalInvocationID.x; at < params.elements; at += stride)
    AT(y, at) = element(at);
}
#endif
